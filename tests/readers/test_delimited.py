"""Delimited text is read in pieces; where they end makes no difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.counters.readers import _delimited
from ranksight.counters.readers._delimited import read_delimited

TEXT = (
    '# made\nkernel,time,note\nsolve, 1.5,plain\n\nsort,2,\'x\n"two\nlines",3,"a, b"\n# a comment\ncopy,4,e\u2028nd,\n'
)


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_pieces_and_ends_of_lines_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(TEXT.replace("\n", ends).encode())
    for piece, rows in ((1 << 20, 200), (1, 1), (7, 2), (40, 3)):
        monkeypatch.setattr(_delimited, "PIECE", piece)
        monkeypatch.setattr(_delimited, "ROWS", rows)
        found = read_delimited(file, ["kernel", "time", "note"])
        assert found.columns == {
            "kernel": ["solve", "sort", "two\nlines", "copy"],
            "time": ["1.5", "2", "3", "4"],
            "note": ["plain", "'x", "a, b", "e\u2028nd"],
        }
        assert list(found.lines) == [3, 5, 6, 9]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("text", "lines"), [("1,2\n\n3,4\n", [2, 4]), ("1,2\n3,4\n\n", [2, 3]), ("1,2\n3,4\n", [2, 3])]
)
def test_empty_lines_are_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, lines: list[int], ends: str
) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(("a,b\n" + text).replace("\n", ends).encode())
    for piece in (1 << 20, 1, 2, 3, 9):
        monkeypatch.setattr(_delimited, "PIECE", piece)
        found = read_delimited(file, ["a", "b"])
        assert [list(column) for column in found.columns.values()] == [["1", "3"], ["2", "4"]]
        assert list(found.lines) == lines


def test_a_ragged_row_is_named_by_its_line_whichever_piece_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "table.csv"
    file.write_text("a,b\n" + "1,2\n" * 30 + "1\n", encoding="utf-8")
    for piece, rows in ((1 << 20, 200), (10, 4)):
        monkeypatch.setattr(_delimited, "PIECE", piece)
        monkeypatch.setattr(_delimited, "ROWS", rows)
        with pytest.raises(InputError, match=r"table\.csv:32 has 1 fields, the header has 2"):
            read_delimited(file, ["a"])


def test_names_that_stand_in_many_rows_are_held_once(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_text("kernel,time\n" + "".join(f"a_long_name,{at}\n" for at in range(1000)), encoding="utf-8")
    names = read_delimited(file, ["kernel"]).columns["kernel"]
    assert len(names) == 1000
    assert len({id(name) for name in names}) == 1
