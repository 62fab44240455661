"""Measure this node and describe it as a platform file."""

from __future__ import annotations

import argparse
import platform as system
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ranksight.cli._document import print_document
from ranksight.cli._saying import say, say_first
from ranksight.core.errors import InputError, UsageError
from ranksight.core.files import check_output
from ranksight.reports.terminal import Table, Text, next_step, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from ranksight.comm.calibration import NetworkCalibration
    from ranksight.platforms import Platform
    from ranksight.platforms.calibration.node import Calibration
    from ranksight.platforms.calibration.sampling import Samples

_EVERY = 5.0  # seconds between lines where there is no terminal


def run(args: argparse.Namespace) -> int:
    """Calibrate, write the platform file, and print what was found with what speaks against it."""
    if not args.seconds > 0:
        raise UsageError(f"ranksight calibrate: --seconds {args.seconds:g} measures nothing", "give seconds above 0")
    if args.list:
        return _list(args.format)
    output = args.output or Path(f"{_clean(system.node()) or 'node'}.toml")
    name = args.name or _clean(output.stem)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise UsageError(f"ranksight calibrate: --name {name!r}", "use letters, digits, '.', '_' and '-'")
    args.network = args.network or bool(args.timings)
    if bool(args.launcher) != (args.network and not args.timings):
        raise UsageError(
            "ranksight calibrate: --network and a launcher, or --timings, belong together",
            "write: --network -- mpirun -n 2, or: --timings FILE",
        )
    completes = args.network and output.is_file()
    for target in filter(None, (output, args.samples)):
        check_output(target, args.force or (completes and target is output))
    if args.network:
        return _network(args, output, name)

    from ranksight.platforms import save
    from ranksight.platforms.recognition import described

    found = _node(args, name)
    save(found.platform, output, overwrite=args.force)
    if args.samples is not None:
        _keep(found.samples, args.samples, args.force)
    if args.format == "json":
        content = {"file": str(output), **_figures(found.platform), "warnings": list(found.warnings)}
        print_document(content)
    elif not args.quiet:
        _print(found.platform)
    if not args.quiet:
        say_first("warning", found.warnings, "warnings")
        if args.format == "table":
            if (known := described(found.platform.model, found.platform.layout)) is not None:
                source = f"{known.name} describes this machine from manuals and published measurements ('--list')"
                show("", Text(source, hanging=-1))
            _written(f"written to {output}", output)
    return 0


def _node(args: argparse.Namespace, name: str) -> Calibration:
    from ranksight.platforms.calibration.effort import CAREFUL, QUICK
    from ranksight.platforms.calibration.node import calibrate

    with _progress(args.quiet) as say:
        return calibrate(name, QUICK if args.quick else CAREFUL, say)


def _network(args: argparse.Namespace, output: Path, name: str) -> int:
    """Measure the network and complete the platform file; a node that is not described yet is calibrated too."""
    from dataclasses import replace

    from ranksight.comm.calibration import calibrate_network, from_timings
    from ranksight.platforms import load, save

    machine = load(str(output.absolute())) if output.is_file() else None
    if args.timings:
        found = from_timings(args.timings, args.level)
    else:
        with _progress(args.quiet) as say:
            say(f"messages between two ranks, {args.seconds:g} s")
            found = calibrate_network(args.launcher, args.seconds, args.largest)
    if machine is not None and found.level in machine.network and not args.force:
        raise InputError(
            f"{output} has a [network.{found.level}] already", "name another file, or replace the table with --force"
        )
    warnings: list[str] = []
    if machine is None:
        node = _node(args, name)
        machine, warnings = node.platform, list(node.warnings)
        if args.samples is not None:
            _keep(node.samples, args.samples, args.force)
    table = found.parameters.to_dict()
    save(replace(machine, network={**machine.network, found.level: table}), output, overwrite=True)
    if args.format == "json":
        content = {"file": str(output), "level": found.level, "hosts": list(found.hosts), **table, "warnings": warnings}
        print_document(content)
    elif not args.quiet:
        _print_network(found)
        _written(f"written to [network.{found.level}] of {output}", output)
    if not args.quiet:
        say_first("warning", warnings, "warnings")
    return 0


def _written(what: str, output: Path) -> None:
    show("", Text(what, hanging=-1), next_step(f"ranksight fit EXPERIMENT --platform {output}"))


def _print_network(found: NetworkCalibration) -> None:
    from ranksight.core.units import format_si

    known = found.parameters
    place = "inside a node" if found.level == "intra" else "between nodes"
    head = f"messages {place}: {', '.join((*dict.fromkeys(found.hosts), found.library or known.source))}"
    rows: list[list[str]] = []
    for first, alpha, beta in zip(known.transfer.first, known.transfer.alpha, known.transfer.beta, strict=True):
        rate = format_si(1 / beta, "B/s") if beta > 0 else ""
        low, high = (1e12 * end for end in known.intervals.get(f"G[{len(rows)}]", (beta, beta)))
        rows.append(
            [format_si(first, "B"), format_si(alpha, "s"), f"{beta * 1e12:.4g} ps/B", f"{low:.4g} .. {high:.4g}", rate]
        )
    small = float(known.transfer.first[0] + 1)
    parts = {"L": known.latency}
    for label, function in (("o_s", known.send_overhead), ("o_r", known.receive_overhead), ("g", known.gap)):
        parts[label] = None if function is None else float(function(small))
    names = {"L": "latency", "g": "gap"}
    values = []
    for label, value in parts.items():
        if value is not None:
            ends = known.intervals.get(names.get(label, label))
            between = "" if ends is None else f" ({format_si(ends[0], 's')} .. {format_si(ends[1], 's')})"
            values.append(f"{label} {format_si(value, 's')}{between}")
    line = ", ".join(values)
    columns = ["from", "alpha", "G/1", "95 %", "bandwidth"]
    notes = [Text(note, 2, 2) for note in known.notes]
    show(Text(head, style="bold"), Table(columns, rows, 2), Text(f"at 1 B: {line or 'alpha alone'}", 2), *notes)


def _list(form: str) -> int:
    from ranksight.platforms import load, names

    machines = {name: load(name) for name in names()}
    if form == "json":
        print_document({name: _figures(machine) for name, machine in machines.items()})
        return 0
    rows = []
    for name, machine in machines.items():
        rows.append([name, machine.title, f"{len(machine.estimates())} of {len(machine.sources)}"])
    show(Table(["platform:word", "machine:text", "estimates/1"], rows))
    show(next_step("ranksight fit EXPERIMENT --platform NAME"))
    return 0


def _clean(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text.split(".")[0]).strip("-._")[:64]


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[str], None]]:
    """What to call with each line of progress: a status line on a terminal, a line now and then elsewhere."""
    if quiet:
        yield lambda line: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("starting") as status:
            yield status.update
    else:
        last = time.monotonic() - _EVERY

        def tick(line: str) -> None:
            nonlocal last
            if time.monotonic() - last >= _EVERY:
                last = time.monotonic()
                say(line, "")

        yield tick


def _keep(samples: tuple[Samples, ...], target: Path, force: bool) -> None:
    import pyperf

    suite = pyperf.BenchmarkSuite([each.benchmark() for each in samples])
    try:
        suite.dump(str(target), replace=force)
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}") from error


def _figures(machine: Platform) -> dict[str, object]:
    """The values of a platform as plain data, SI units."""
    return {
        "name": machine.name,
        "vendor": machine.vendor,
        "model": machine.model,
        "cores": machine.cores,
        "domains": machine.domains,
        "cores_per_domain": machine.layout.cores_per_domain,
        "frequency": machine.frequency,
        "caches": {
            cache.name: {
                "size": cache.size,
                "effective": cache.effective,
                "bandwidth": cache.bandwidth,
                "bandwidth_shared": cache.bandwidth_shared,
            }
            for cache in machine.caches
        },
        "latencies": machine.latencies(),
        "memory_latency": machine.memory.latency,
        "bandwidth_core": machine.memory.bandwidth_core,
        "bandwidth_domain": machine.memory.bandwidth_domain,
        "estimates": list(machine.estimates()),
    }


def _print(machine: Platform) -> None:
    from ranksight.core.units import format_si

    layout = machine.layout
    about = (
        f"sockets {layout.sockets}, domains per socket {layout.domains_per_socket}, cores per domain "
        f"{layout.cores_per_domain}, threads per core {layout.threads_per_core}, "
        f"clock under load {format_si(machine.frequency, 'Hz')}"
    )
    rows = []
    for cache in machine.caches:
        rate = "" if cache.bandwidth is None else format_si(cache.bandwidth, "B/s")
        time_ = format_si(cache.latency / (machine.clock.single or machine.frequency), "s")
        every = "" if cache.bandwidth_shared is None else format_si(cache.bandwidth_shared, "B/s")
        size = f"{cache.size / 1024:.0f} KiB"
        seen = "" if cache.effective is None else f"{cache.effective / 1024:.0f} KiB"
        rows.append([cache.name, size, seen, f"{cache.shared_by}", f"{cache.latency:.1f}", time_, rate, every])
    cycles, time_ = machine.latencies()["memory"], format_si(machine.memory.latency, "s")
    rate, every = (format_si(x, "B/s") for x in (machine.memory.bandwidth_core, machine.memory.bandwidth_domain))
    rows.append(["memory", "", "", f"{layout.cores_per_domain}", f"{cycles:.1f}", time_, rate, every])
    columns = ["level:word", "size", "seen/3", "shared by/2", "cycles/1", "time", "one core reads", "all read/4"]
    show(
        Text(f"{machine.name}: {machine.title}", style="bold"),
        Text(about, 2, 2),
        Table(columns, rows, 2),
        Text(f"a domain reads {format_si(machine.memory.bandwidth_domain, 'B/s')} from its memory", 2, 2),
    )
