"""What verbs print: it fits, it is plain where no terminal shows colour, and names of others steer nothing."""

from __future__ import annotations

import io
import shutil
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranksight.core.names import clipped, short_names
from ranksight.reports.similar import merged
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
    assert any("12.3 ms" in line and line.startswith(("solv", "oper")) for line in text)


def test_narrow_terminals_lose_the_least_needed_columns_and_say_so() -> None:
    text = "\n".join(lines(TABLE, room=40))
    assert "not shown in 40 columns: " in text
    assert "what helps most" in text
    assert "not shown" not in "\n".join(lines(TABLE, room=120))


def test_a_drawing_is_left_out_without_a_word() -> None:
    table = Table([Column("kernel", "name"), Column("trend", "word", spare=1, silent=True)], [["solve", "#" * 20]])
    assert "#" in "\n".join(lines(table, room=60))
    assert [line.split() for line in lines(table, room=20)] == [["kernel"], ["solve"]]


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
def test_clipped_text_fits_and_keeps_both_ends(name: str, room: int) -> None:
    cut = clipped(name, room)
    assert len(cut) <= room
    assert "\n" not in cut
    if len(name) > room >= 4 and name.isascii() and name.isprintable():
        assert cut[0] == name[0]
        assert cut[-1] == name[-1]


NAMES = st.lists(st.text("abcAB:<>(), *_", max_size=40) | st.from_regex(r"\A(N::){0,3}[fg](<[a-c, ]*>)?\([a-c]*\)\Z"))


@given(NAMES, st.integers(4, 40))
def test_names_shown_together_fit_and_stay_distinct(names: list[str], room: int) -> None:
    shown = short_names(names, room)
    assert list(shown) == list(dict.fromkeys(names))
    assert len(set(shown.values())) == len(shown)
    assert all(len(text) <= room for text in shown.values())
    assert all(shown[name] == name for name in names if len(name) <= room)


COMM = "LAMMPS_NS::Comm::"
SUM = "(anonymous namespace)::Field<double, 3>::sum(std::map<int, Cell<int> > const&, unsigned long) const"


@pytest.mark.parametrize(
    ("name", "room", "cut"),
    [
        (COMM + "forward_comm(int)", 18, "Comm::forward_comm"),
        (COMM + "forward_comm(int)", 40, COMM + "forward_comm(int)"),
        ("void LAMMPS_NS::PairLJ::eval<1, 1>(int, Data*)", 30, "LAMMPS_NS::PairLJ::eval"),
        (SUM, 40, "(anonymous namespace)::Field::sum"),
        (SUM, 12, "Field::sum"),
        ("bool operator< <int>(A<int> const&, B const&)", 20, "operator< <int>"),
        ("Table<int>::operator()(unsigned long, unsigned long) const", 20, "Table::operator()"),
        ("operator new(unsigned long) [libstdc++]", 24, "operator new [libstdc++]"),
        ("main::{lambda(int)#1}::operator()(int) const", 36, "main::{lambda(int)#1}::operator()"),
        ("a time step (outer) of the atmosphere", 20, "a time step (…sphere"),
    ],
)
def test_what_a_name_loses_first(name: str, room: int, cut: str) -> None:
    assert short_names([name], room) == {name: cut}


def test_names_that_stripping_makes_the_same_keep_what_distinguishes_them() -> None:
    names = [COMM + "forward_comm(int)", COMM + "forward_comm(Fix*)", COMM + "reverse_comm(int)"]
    assert list(short_names(names, 20).values()) == ["forward_comm(int)", "forward_comm(Fix*)", "Comm::reverse_comm"]
    at = ["std::vector<int>::at(unsigned long)", "std::vector<double>::at(unsigned long)"]
    assert list(short_names(at, 22).values()) == ["std::vector<int>::at", "vector<double>::at"]
    python = ["Grid.exchange (heat.py:21)", "sweep (heat.py:9)", "sum_up (heat.py:30)", "sum_up (total.py:7)"]
    shown = ["Grid.exchange", "sweep (heat.py:9)", "sum_up (heat.py:30)", "sum_up (total.py:7)"]
    assert list(short_names(python, 20).values()) == shown
    table = Table([Column("kernel", "name")], [[name] for name in names])
    assert len(set(lines(table, room=24)[1:4])) == 3


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="c++filt not found")
def test_mangled_names_are_shown_as_the_source_has_them() -> None:
    name = "_ZN9LAMMPS_NS4Comm12forward_commEi"
    assert short_names([name], 40) == {name: COMM + "forward_comm(int)"}


def test_sentences_that_differ_in_numbers_are_said_once() -> None:
    said = {
        "the interval spans a factor of 51.2, more than 4": ["a"],
        "too few": ["b"],
        "the interval spans a factor of 13,000, more than 4": ["c_2"],
        "the interval spans a factor of 9, more than 4": ["d"],
    }
    assert merged(said) == {
        "the interval spans a factor of 9 to 13,000, more than 4": ["a", "c_2", "d"],
        "too few": ["b"],
    }
    assert merged({"l2 of 3": [], "l3 of 3": []}) == {"l2 of 3": [], "l3 of 3": []}
