"""What verbs print: it fits, it is plain where no terminal shows colour, and names of others steer nothing."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight._names import short
from ranksight.reports.terminal import Cell, Column, Table, Text, lines, next_step, show, sparkline, width

LONG = "solver<matrix<double, layout_right>, preconditioner>::operator()(std::vector<double> const&)"
TABLE = Table(
    [
        Column("kernel", "name"),
        Column("time"),
        Column("90% interval", "word", spare=1),
        Column("what helps most", "text", spare=2),
        Column("mark", "word"),
    ],
    [
        [LONG, "12.3 ms", "11 ms .. 14 ms", "memory twice as fast, or half as many loads of it", Cell("?", "yellow")],
        ["halo", "1 s", "", "-", ""],
    ],
)


@pytest.mark.parametrize("room", [160, 80, 50, 40])
def test_tables_and_paragraphs_fit(room: int) -> None:
    text = lines(TABLE, Text("a sentence that says something " * 5, indent=2), room=room)
    assert max(map(len, text)) <= room
    assert any("12.3 ms" in line and line.startswith("solv") for line in text)


def test_narrow_terminals_lose_the_least_needed_columns_and_say_so() -> None:
    text = "\n".join(lines(TABLE, room=40))
    assert "what helps most)" in text
    assert "no room here for" in text
    assert "no room" not in "\n".join(lines(TABLE, room=120))


def test_numbers_stand_below_each_other_on_the_right() -> None:
    text = lines(TABLE, room=120)
    first, second = text[1], next(line for line in text if line.startswith("halo"))
    assert first.index("12.3 ms") + len("12.3 ms") == second.index("1 s") + len("1 s")


def test_a_column_without_content_is_not_shown() -> None:
    assert lines(Table([Column("a", "word"), Column("b", "word")], [["x", ""]])) == ["a", "x"]


def test_commands_are_not_broken() -> None:
    command = "ranksight measure " + "--size 1 " * 20
    assert lines(next_step(command.rstrip()), room=40) == [f"next: {command.rstrip()}"]


def test_names_steer_no_terminal() -> None:
    text = "\n".join(lines(Table([Column("k", "name")], [["\x1b]0;title\x07\x1b[2J"]]), Text("a\x1b[31mb"), "c\x9bd"))
    assert not set(text) & {"\x1b", "\x07", "\x9b"}
    assert "[bold]" in lines("[bold]x[/]")[0]


def test_no_colour_in_a_pipe_nor_with_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    pipe = io.StringIO()
    show(Text("x", style="red"), file=pipe)
    assert pipe.getvalue() == "x\n"

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    coloured, plain = Terminal(), Terminal()
    show(Text("x", style="red"), file=coloured)
    assert "\x1b[31m" in coloured.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    show(Text("x", style="red"), file=plain)
    assert "\x1b[31m" not in plain.getvalue()


def test_a_stream_of_few_characters_gets_what_it_can_hold() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    show("a … b ▁▄█ é", file=stream)
    assert raw.getvalue() == b"a ~ b _-# ?\n"


def test_the_width_is_that_of_columns_within_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    for given_, taken in (("40", 40), ("100", 100), ("3", 30), ("9999", 160)):
        monkeypatch.setenv("COLUMNS", given_)
        assert width() == taken
    monkeypatch.delenv("COLUMNS")
    monkeypatch.setattr(sys, "__stdout__", io.StringIO())
    assert width() == 80


def test_sparklines() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5, 5]) == "▁▁"
    assert sparkline([1, float("nan"), 0], 0.0, 1.0) == "█ ▁"
    assert sparkline([float("nan")]) == ""


@given(st.text(), st.integers(1, 60))
def test_short_names_fit_and_keep_both_ends(name: str, room: int) -> None:
    cut = short(name, room)
    assert len(cut) <= room
    assert "\n" not in cut
    if len(name) > room >= 4 and name.isascii() and name.isprintable():
        assert cut[0] == name[0]
        assert cut[-1] == name[-1]
