"""Completions of the shells match the parser."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ranksight.cli.main import VERBS, main, verb_parser


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def complete(text: str, *words: str) -> list[str]:
    line = " ".join(f"'{word}'" for word in words)
    asked = (
        f"{text}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _ranksight; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    return subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    assert complete(text, "ranksight", "") == list(VERBS)
    assert complete(text, "ranksight", "pre") == ["predict"]
    assert "--platform" in complete(text, "ranksight", "fit", "--pl")
    assert complete(text, "ranksight", "predict", "--format", "j") == ["json"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_of_every_verb_is_there(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for verb in VERBS:
        for action in verb_parser(verb)._actions:
            for name in action.option_strings:
                if name.startswith("--"):
                    assert (f"-l {name[2:]}" if shell == "fish" else name) in text


def test_another_shell_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "powershell"]) == 2
    assert "powershell" in capsys.readouterr().err
