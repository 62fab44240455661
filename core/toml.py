"""TOML that people write or edit: size and nesting are limited, keys are checked against those known."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from ranksight.core import limits
from ranksight.core.errors import InputError, readable

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DOTTED = re.compile(rf"(?<![\w.-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{limits.TOML_PARTS},}}+")
"""A dotted key of too many parts: the parser's time and memory grow with their square."""


def read(path: Path, remedy: str = "") -> bytes:
    """The bytes of a file, as far as :func:`decode` needs them to refuse it.

    Raises InputError when it cannot be read.
    """
    with readable(path, remedy):
        if path.exists() and not path.is_file():
            raise InputError(f"{path} is not a file", remedy)
        with path.open("rb") as stream:
            return stream.read(limits.TOML + 1)


def shipped(package: str) -> tuple[str, ...]:
    """Names of the TOML files in a package, sorted."""
    names = (item.name for item in files(package).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def find(name_or_path: str | os.PathLike[str], package: str, kind: str) -> tuple[bytes, str]:
    """Bytes and origin of a file that ships in `package`, by its name, or of any other.

    What ends in ``.toml`` or holds a path separator is a file. `kind`: what such a file describes, for messages. Raises
    InputError when no file has the name, or it cannot be read.
    """
    text = os.fspath(name_or_path)
    if isinstance(name_or_path, str) and not text.endswith(".toml") and "/" not in text and os.sep not in text:
        known = shipped(package)
        if text not in known:
            near = difflib.get_close_matches(text, known, n=3)
            raise InputError(
                f"no {kind} is named {text!r}",
                f"{'nearest' if near else 'known'}: {', '.join(near or known)}; a file's name ends in .toml",
            )
        return files(package).joinpath(f"{text}.toml").read_bytes(), f"{kind} {text}"
    path = Path(text)
    if not path.is_file():
        raise InputError(f"{path} is not a {kind} file", f"name a file, or one of {', '.join(shipped(package))}")
    return read(path), str(path)


def decode(content: bytes, origin: str, remedy: str) -> dict[str, Any]:
    """The tables that `content` holds; `origin` names it in messages.

    Raises InputError when it is too large, no UTF-8 or no TOML, with the line and column of what is wrong.
    """
    if len(content) > limits.TOML:
        raise InputError(f"{origin} is larger than {limits.TOML} bytes", remedy)
    try:
        text = content.decode("utf-8-sig")  # some editors put a mark before the text
        if long := _DOTTED.search(text):
            line = text.count("\n", 0, long.start()) + 1
            raise InputError(f"{origin}:{line} has a key of more than {limits.TOML_PARTS} parts", remedy)
        found = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"{origin}: byte {error.start} is not UTF-8", remedy) from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{origin} is not TOML: {error}", remedy) from error
    except RecursionError:
        raise InputError(f"{origin} is nested too deeply", remedy) from None
    except ValueError:  # of Python, which converts no longer ones
        raise InputError(f"{origin} has a number of too many digits", remedy) from None
    _check_whole(found, origin, remedy)
    return found


def _check_whole(found: Mapping[str, Any], origin: str, remedy: str) -> None:
    """Refuse whole numbers of more than 64 bits, which TOML does not have: no float and no text can be made of them."""
    todo: list[tuple[str, Any]] = list(found.items())
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{key}.{name}", item) for name, item in value.items()]
        elif isinstance(value, list):
            todo += [(key, item) for item in value]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise InputError(f"{origin}: {key:.80} is a whole number of more than 64 bits", remedy)


def check_known(given: Collection[str], known: Collection[str], origin: str, where: str = "") -> None:
    """Refuse a key that is not `known`; `where` is the table it stands in, with its dot."""
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, list(known), n=1)
            raise InputError(f"{origin}: unknown key {where}{key}", f"known: {', '.join(near or known)}")


def table_of(content: Mapping[str, Any], key: str, origin: str, remedy: str = "", where: str = "") -> Mapping[str, Any]:
    """The table under `key`; InputError where there is none, or no table."""
    found = content.get(key)
    if not isinstance(found, dict):
        raise InputError(f"{origin}: {'no table' if found is None else 'not a table:'} [{where}{key}]", remedy)
    return found


def is_line(value: object) -> bool:
    """Whether it is one line of text of a length that people write."""
    return isinstance(value, str) and len(value) <= 2000 and not any(ord(letter) < 32 for letter in value)
