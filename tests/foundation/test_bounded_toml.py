"""Dotted keys of TOML are bounded before they are parsed."""

from __future__ import annotations

import pytest

from ranksight.core import limits, toml
from ranksight.core.errors import InputError


@pytest.mark.parametrize("key", ["a.", '"a b" . ', "'a'.", "x-1 ."])
@pytest.mark.parametrize("text", ["{}=1", "[{}]", "b = {{ {} = 1 }}"])
def test_keys_of_many_parts_are_refused_with_their_line(key: str, text: str) -> None:
    content = "ok = 1\n" + text.format(key * limits.TOML_PARTS + "end") + "\n"
    with pytest.raises(InputError, match=r"f\.toml:2 has a key of more than 32 parts"):
        toml.decode(content.encode(), "f.toml", "mend it")


def test_other_content_with_dots_is_read() -> None:
    content = "a.b.c = 1\nrates = [0.1, 0.2, 0.3]\ntext = '...................................................'\n"
    content += "# " + "." * 100 + "\nlong = [" + ", ".join(["1.5"] * 200) + "]\n"
    assert toml.decode(content.encode(), "f.toml", "")["a"]["b"]["c"] == 1


def test_the_check_of_keys_takes_linear_steps() -> None:
    """A file of the largest size that nearly matches everywhere is read at once: a quadratic pattern would not end."""
    for piece in ("a.", "a", '"', "a .", ". "):
        text = piece * ((limits.TOML - 10) // len(piece))
        with pytest.raises(InputError):
            toml.decode(text.encode(), "f.toml", "")
