"""Reports of mpiP (text, verbose form): time and bytes of every call site on every rank.

The number of a call site is that of one run: kernels are the functions that call MPI. Where mpiP found no symbols, a
site is named by what it calls, with the last three digits of its address where several call the same: programs are
loaded at other addresses in every run, but on whole pages.

mpiP prints four significant digits of sums and means: bytes are exact only where a call site sends one size. Sites
whose time on a rank lies below its report threshold have none; sites that send nothing have no bytes. It counts what
the caller states at the call, for a receive nothing.

Source: mpiP 3.5 user guide and report.c (LLNL/mpiP).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ranksight.comm.costs.collective import OPERATIONS, operation_name
from ranksight.comm.readers import _messages
from ranksight.core.errors import InputError
from ranksight.core.reading import READERS, Reading
from ranksight.core.units import counted

_TIMES, _SENT, _RMA = (
    "Callsite Time statistics (all, milliseconds)",
    "Callsite Message Sent statistics (all, sent bytes)",
    "Callsite RMA statistics (all, origin bytes)",
)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{1,16}")
_PAGE = 0x1000
_CONCISE = "Callsite Time statistics (all callsites, milliseconds)"


@dataclass(slots=True)
class _Report:
    command: str = ""
    version: str = ""
    tasks: dict[int, dict[str, float]] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)
    addresses: dict[int, int] = field(default_factory=dict)  # of call sites without a function
    times: dict[tuple[str, int, int], tuple[int, float]] = field(default_factory=dict)
    sent: dict[tuple[str, int, int], tuple[int, float, float]] = field(default_factory=dict)


class MpiP:
    """Reads mpiP's text reports; see the module."""

    text = "mpiP reports (text, verbose): calls, bytes and time a call site and rank"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first line is mpiP's."""
        return head[:6] == b"@ mpiP"

    def read(self, path: Path) -> Iterator[Reading]:
        """Read one report.

        Raises InputError when it is concise (reduced over ranks), cut off or damaged; file and line are named.
        """
        report = _parse(path)
        ranks = _messages.complete(report.tasks, f"{path}: section MPI Time")
        tally = _messages.Tally(str(path))
        kernels, unnamed = _kernels(report)
        for name, site, rank in dict.fromkeys((*report.times, *report.sent)):
            if rank >= ranks:
                raise InputError(f"{path}: call site {site} names rank {rank} of {ranks}", "the report is damaged")
            count, seconds = report.times.get((name, site, rank), (0, float("nan")))
            sends, mean, total = report.sent.get((name, site, rank), (count, 0.0, 0.0))
            collective = operation_name(name) in OPERATIONS
            tally.add(
                kernels[name, site],
                rank,
                name,
                ranks if collective else 0,
                mean,
                seconds,
                max(count, sends),
                total=round(total),
            )
        notes = (
            f"mpiP {report.version}: sums and means are rounded to four digits",
            "collectives are taken on all ranks: mpiP does not name communicators",
            *unnamed,
        )
        command = tuple(report.command.split())
        yield _messages.reading(tally, report.tasks, path, notes, profiled=True, command=command)


READERS.register("mpip")(MpiP())


def _kernels(report: _Report) -> tuple[dict[tuple[str, int], str], list[str]]:
    """The kernel of each operation and site, by what two runs share, and a note where mpiP found no functions."""
    sites = dict.fromkeys((name, site) for name, site, _ in (*report.times, *report.sent))
    unnamed = [(name, site) for name, site in sites if site not in report.functions]
    several = Counter(name for name, _ in unnamed)
    kernels = {(name, site): report.functions.get(site, f"MPI_{_messages.plain(name)}") for name, site in sites}
    for name, site in unnamed:
        if several[name] > 1 and site in report.addresses:
            kernels[name, site] += f" (at ...{report.addresses[site] % _PAGE:03x})"
    if not unnamed:
        return kernels, []
    which = "; several of one operation by the end of their addresses" if max(several.values()) > 1 else ""
    return kernels, [
        f"{counted(len(unnamed), 'call site')} without a function are named by their operation{which}: "
        "compile with -g for the functions"
    ]


def _parse(path: Path) -> _Report:
    report, section, ended = _Report(), "", False
    for line_number, line in _messages.lines(path):
        where = f"{path}:{line_number}"
        if line.startswith("@---") and line[4:5].isspace():
            section = re.sub(r":\s*\S{1,20}$", "", line[4:].rstrip().rstrip("-").strip())
            ended = section.startswith("End of Report")
            if section.startswith(_CONCISE):
                raise InputError(
                    f"{where}: the report is concise: it holds no figures a rank", "run mpiP without -c in MPIP"
                )
        elif line.startswith("@"):
            key, _, value = line[1:].partition(":")
            if key.strip() == "Command":
                report.command = value.strip()
            elif key.strip() == "Version":
                report.version = value.strip()
        elif section == "MPI Time (seconds)":
            _task(report, line, where)
        elif section == "Callsites":
            _caller(report, line, where)
        elif section in (_TIMES, _SENT, _RMA):
            _site(report, section, line, where)
    if not report.tasks:
        raise InputError(f"{path} has no section 'MPI Time (seconds)'", "it is not an mpiP report, or cut off")
    if not ended:
        raise InputError(f"{path} ends before 'End of Report'", "the report is cut off: copy it again")
    return report


def _caller(report: _Report, line: str, where: str) -> None:
    """The function, or the address, of a call site: level 0 is the caller of MPI."""
    fields = line.split()
    if len(fields) < 4 or not fields[0].isdecimal() or fields[1] != "0":
        return
    site = _messages.whole(fields[0], where, "the site")
    address = _ADDRESS.fullmatch(fields[2])
    # An address has no line; the name of a function of C++ may hold blanks.
    function = " ".join(fields[3 if address else 4 : -1]) or fields[-2]
    if function != "[unknown]":
        report.functions[site] = function
    elif address:
        report.addresses[site] = int(fields[2], 16)


def _task(report: _Report, line: str, where: str) -> None:
    fields = line.split()
    if len(fields) < 3 or fields[0] == "*" or not fields[0].isdecimal():
        return
    rank = _messages.whole(fields[0], where, "the task")
    names = (("wall_time", 1), ("mpi_time", 2))
    report.tasks[rank] = {name: _messages.number(fields[i], where, "a time") for name, i in names}


def _site(report: _Report, section: str, line: str, where: str) -> None:
    fields = line.split()
    if not fields or fields[0] in ("Name",) or set(line) <= {"-", " "}:
        return
    if len(fields) < 8:
        raise InputError(f"{where}: {len(fields)} columns in '{section}', 8 expected", "the report is damaged")
    if fields[2] == "*":
        return
    key = (fields[0], _messages.whole(fields[1], where, "the site"), _messages.whole(fields[2], where, "the rank"))
    count = _messages.whole(fields[3], where, "the count", 1)
    mean = _messages.number(fields[5], where, "the mean")
    if section == _TIMES:
        report.times[key] = (count, mean * count / 1e3)
    else:
        largest, least = (_messages.number(fields[i], where, "a size") for i in (4, 6))
        total = _messages.number(fields[7], where, "the sum")
        # Where all calls send the same, count times size has more digits than the sum.
        report.sent[key] = (count, mean, count * mean if largest == least and mean < 1e4 else total)
