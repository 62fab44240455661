"""Print what makes a shell complete verbs and options."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def run(chosen: argparse.Namespace) -> int:
    """Print the script."""
    print(_PRINT[chosen.shell](), end="")
    return 0


def _verbs() -> dict[str, list[argparse.Action]]:
    """The options of every verb that people may type."""
    from ranksight.cli.main import VERBS, verb_parser

    return {
        verb: [
            action
            for action in verb_parser(verb)._actions
            if action.option_strings and action.help is not argparse.SUPPRESS
        ]
        for verb in VERBS
    }


def _names(actions: list[argparse.Action]) -> list[str]:
    return [name for action in actions for name in action.option_strings if name.startswith("--")]


def _bash() -> str:
    verbs = _verbs()
    cases = "".join(f"        {verb}) words='{' '.join(_names(actions))}' ;;\n" for verb, actions in verbs.items())
    choices = "".join(
        f"        {verb}:{name}) COMPREPLY=($(compgen -W '{' '.join(map(str, action.choices))}' -- \"$word\"))\n"
        "            return ;;\n"
        for verb, actions in verbs.items()
        for action in actions
        if action.choices
        for name in action.option_strings
    )
    return (
        "_ranksight() {\n"
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=\n'
        f'    if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W \'{" ".join(verbs)}\' -- "$word")); return; fi\n'
        '    case "${COMP_WORDS[1]}:$before" in\n' + choices + "    esac\n"
        '    case "${COMP_WORDS[1]}" in\n' + cases + "    esac\n"
        '    case "$word" in\n'
        '        -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;\n'
        '        *) COMPREPLY=($(compgen -f -- "$word")) ;;\n'
        "    esac\n"
        "}\n"
        "complete -o filenames -F _ranksight ranksight\n"
    )


def _zsh() -> str:
    return "autoload -U +X bashcompinit && bashcompinit\n" + _bash()


def _fish() -> str:
    from ranksight.cli.main import VERBS

    lines = ["complete -c ranksight -f -n __fish_use_subcommand -a '" + " ".join(VERBS) + "'"]
    for verb, actions in _verbs().items():
        for action in actions:
            for name in _names([action]):
                line = f"complete -c ranksight -n '__fish_seen_subcommand_from {verb}' -l {name[2:]}"
                if action.nargs != 0:
                    line += " -r"
                if action.choices:
                    line += f" -f -a '{' '.join(map(str, action.choices))}'"
                text = (action.help or "").replace("\\", "\\\\").replace("'", "\\'").replace("%%", "%")
                lines.append(f"{line} -d '{text}'")
    return "\n".join(lines) + "\n"


_PRINT: dict[str, Callable[[], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}
