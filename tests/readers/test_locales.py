"""The same report in many locales, in every form, is the same reading: one decision a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.numerals import decimal_mark, parse_number, settled_mark
from ranksight.core.reading import READERS
from ranksight.counters.readers.csv_table import Columns, read_table

LOCALES = {
    "C": ("", "."),
    "en_US": (",", "."),
    "en_IN": (",", "."),
    "de_DE": (".", ","),
    "fr_FR": ("\u202f", ","),
    "cs_CZ": ("\u00a0", ","),
    "sv_SE, in ASCII": (" ", ","),
    "de_CH": ("\u2019", "."),
    "es_ES": ("", ","),
    "de_LI": ("'", "."),
}
"""What groups thousands, and what separates decimals."""
FORMS = ("plain", "tagged", "interval", "processors")


def written(value: float, locale: str, digits: int = 0, grouped: bool = True) -> str:
    """A number as ``printf`` writes it there, with ``%'f`` where it is `grouped`."""
    group, mark = LOCALES[locale]
    whole, _, rest = f"{value:.{digits}f}".partition(".")
    head, tail = whole[:-3], whole[-3:]
    step = 2 if locale == "en_IN" else 3
    parts = [head[max(0, at - step) : at] for at in range(len(head), 0, -step)][::-1] if head else []
    text = group.join([*parts, tail]) if grouped and group else whole
    return f"{text}{mark}{rest}" if digits else text


def rows(locale: str) -> list[str]:
    def line(text: str, width: int, unit: str, event: str, comment: str) -> str:
        return f"{text:>{width}} {unit:<4} {event:<24}  #    {comment}"

    share = written(83.33, locale, 2)
    return [
        line(written(1234.56, locale, 2), 18, "msec", "task-clock", f"{written(0.998, locale, 3)} CPUs utilized"),
        line(written(3788234000, locale), 18, "", "cycles", f"{written(3.068, locale, 3)} GHz"),
        line(written(5538077000, locale), 18, "", "instructions", f"{written(1.46, locale, 2)} insn   ({share}%)"),
        line(written(7, locale), 18, "", "page-faults", f"{written(5.670, locale, 3)} /sec"),
    ]


def report(locale: str, form: str) -> str:
    lines = rows(locale)
    if form == "interval":
        return "#           time             counts unit events\n" + "\n".join(
            f"     1.000123456 {row}" for row in lines
        )
    if form == "processors":
        lines = [f"S0        8 {row}" for row in lines]
    foot = ["", f"       {written(1.237, locale, 9, False)} seconds time elapsed", ""]
    lines = [" Performance counter stats for './solver 3':", "", *lines, *foot]
    return "\n".join(f"[1,0]<stderr>:{line}" if form == "tagged" else line for line in lines)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_text_of_perf_stat(tmp_path: Path, locale: str, form: str, encoding: str) -> None:
    if encoding == "cp1252" and locale == "fr_FR":
        pytest.skip("no narrow blank in this encoding")
    path = tmp_path / "stat.txt"
    path.write_text(report(locale, form), encoding=encoding)
    assert READERS["perf-stat"].recognises(path, path.read_bytes()[:4096])
    (found,) = READERS["perf-stat"].read(path)
    assert found.counters is not None
    (row,) = found.counters.to_dict("records")
    assert row["cycles"] == 3788234000
    assert row["instructions"] == 5538077000
    assert row["page-faults"] == 7
    assert row["cpu_time"] == pytest.approx(1.23456)
    assert len(row) == (6 if form == "interval" else 7)
    if form != "interval":
        assert found.wall_time == pytest.approx(1.237)
    assert "83.33 %" in found.provenance["instructions"]


@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
@pytest.mark.parametrize("locale", LOCALES)
def test_separated_rows_of_perf_stat(tmp_path: Path, locale: str, separator: str) -> None:
    path = tmp_path / "stat.csv"
    value, share = written(1234.56, locale, 2, False), written(83.33, locale, 2)
    fields = [
        [f"  {value}", "msec", "task-clock", "1234560000", share, written(0.998, locale, 3), "CPUs utilized"],
        ["3788234000", "", "cycles  ", "1234560000", written(100, locale, 2), written(3.068, locale, 3), "GHz"],
    ]
    path.write_text("# started on X\n\n" + "\n".join(map(separator.join, fields)) + "\n")
    assert READERS["perf-stat"].recognises(path, path.read_bytes()[:4096])
    if separator == "," and LOCALES[locale][1] == ",":
        with pytest.raises(InputError, match=r"numbers have decimal commas; .*LC_ALL=C, or -x ';'"):
            list(READERS["perf-stat"].read(path))
        return
    (found,) = READERS["perf-stat"].read(path)
    assert found.counters is not None
    (row,) = found.counters.to_dict("records")
    assert row["cycles"] == 3788234000
    assert row["cpu_time"] == pytest.approx(1.23456)
    assert "83.33 %" in found.provenance["cpu_time"]


@pytest.mark.parametrize("locale", LOCALES)
def test_json_of_perf_stat(tmp_path: Path, locale: str) -> None:
    path = tmp_path / "stat.json"
    value, share = written(1234.56, locale, 6, False), written(83.33, locale, 2)
    path.write_text(
        f'{{"counter-value" : "{value}", "unit" : "msec", "event" : "task-clock", "pcnt-running" : {share}}}\n'
        f'{{"counter-value" : "{written(3788234000, locale, 6, False)}", "unit" : "", "event" : "cycles", '
        f'"event-runtime" : 1234, "pcnt-running" : {written(100, locale, 2)}, '
        f'"metric-value" : {written(3.068, locale, 6)}}}\n'
    )
    (found,) = READERS["perf-stat"].read(path)
    assert found.counters is not None
    (row,) = found.counters.to_dict("records")
    assert row["cycles"] == 3788234000
    assert row["cpu_time"] == pytest.approx(1.23456)


@pytest.mark.parametrize("locale", LOCALES)
def test_tables(tmp_path: Path, locale: str) -> None:
    path = tmp_path / "t.csv"
    lines = ["ranks;n;time", f"1;{written(64000, locale)};{written(1500.25, locale, 2)}"]
    path.write_text("\n".join([*lines, f"2;{written(8000, locale)};{written(750, locale)}"]) + "\n", encoding="utf-8")
    found = list(read_table(path, Columns({"ranks": "ranks", "n": "n"}, {"time": "time"})))
    assert [each.configuration["n"] for each in found] == [64000, 8000]
    assert [float(each.counters["time"][0]) for each in found if each.counters is not None] == [1500.25, 750]


def test_columns_of_one_table_have_one_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("ranks;n;time\n1;1.000;0,5\n2;2.000;0,25\n")
    found = list(read_table(path, Columns({"ranks": "ranks", "n": "n"}, {"time": "time"})))
    assert [each.configuration["n"] for each in found] == [1000, 2000]
    path.write_text("ranks;n;time\n1;1.5;0,5\n")
    with pytest.raises(InputError, match=r"two decimal marks: a comma in '0,5' and a point in '1\.5'"):
        list(read_table(path, Columns({"ranks": "ranks", "n": "n"}, {"time": "time"})))


def test_vtune_in_two_locales(tmp_path: Path) -> None:
    head = "Function\tModule\tCPU Time\tHardware Event Count:INST_RETIRED.ANY\n"
    for time, count in (("1,234.500s", "8,000"), ("1.234,500s", "8.000")):
        path = tmp_path / "v.csv"
        path.write_text(f"{head}solve\theat\t{time}\t{count}\n")
        (found,) = READERS["vtune"].read(path)
        assert found.counters is not None
        assert found.counters["time"].tolist() == [1234.5]
        assert found.counters["instructions"].tolist() == [8000]


def test_what_stays_open_names_both_readings() -> None:
    with pytest.raises(InputError, match=r"'3,788' is 3788 or 3\.788.*LC_ALL=C"):
        settled_mark(["3,788", "12,000"], "stat.txt")
    assert settled_mark(["3,788", "0,998"], "stat.txt") == ","
    assert settled_mark(["3,788", "1.5"], "stat.txt") == "."
    assert settled_mark(["3,788"], "stat.txt", whole=["3,788"]) == "."
    with pytest.raises(InputError, match="two decimal marks"):
        decimal_mark(["1,5", "1.5"], "stat.txt")


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize("value", [0.125, 12.0, 1234.5, 1234567.0, 98765432.25, 0.0])
def test_a_number_in_its_locale_is_the_number(locale: str, value: float) -> None:
    assert parse_number(written(value, locale, 3), LOCALES[locale][1]) == value
