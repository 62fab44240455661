"""Run the benchmarks and write RESULTS.md.

``python -m benchmarks`` runs all, ``python -m benchmarks NAME ...`` those named; the sections of the others stay as
they were. Extra-P is compared where ``--extrap-python`` names the interpreter of an environment that holds it, made
with ``python -m venv extrap-env && extrap-env/bin/pip install extrap==4.2.5``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import sys
import time
from datetime import date
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.headlines import headlines
from benchmarks.settings import Settings, Skipped

BENCHMARKS = (
    "measured_series",
    "resource_model",
    "machine",
    "ratios",
    "cores",
    "shrinkage",
    "synthetic_nodes",
    "beyond_nodes",
    "node_step",
    "choices",
    "prevalence",
    "ablation",
    "synthetic",
    "late_changes",
    "laws",
    "work_per_rank",
    "speed",
    "starting",
    "million",
    "store",
    "many_kernels",
    "profiles",
    "traces",
    "collectors",
    "tracer_overhead",
    "measuring",
    "levels",
    "distant",
    "planning",
    "simulator",
    "network",
    "known_laws",
    "further_laws",
    "communication",
    "loggp",
    "verdicts",
    "expectations",
    "real_programs",
    "mini_programs",
    "real_messages",
    "energy",
    "energy_priors",
    "mutants",
    "drawn_mutants",
    "safety",
)
RESULTS = Path(__file__).with_name("RESULTS.md")
MARK = "<!-- {name} -->"
HEAD = (
    "# Results",
    "",
    "Written by `python -m benchmarks`, a single table by `python -m benchmarks NAME`; every figure can be had again",
    "from there. Each table states its date, its machine and what was compared.",
)


def machine() -> str:
    """The kind of machine, without names."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        found = re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8"))
        model = found[1].strip() if found else model
    return f"{model}, {os.cpu_count()} cores, {platform.system()}"


def versions() -> str:
    """Versions of what carries the figures."""
    return ", ".join(
        [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in ("numpy", "scipy", "pandas"))]
    )


def sections(text: str) -> dict[str, str]:
    """The sections of an earlier RESULTS.md, by name."""
    parts = re.split(r"<!-- (\w+) -->\n", text)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def write(kept: dict[str, str]) -> None:
    """Write RESULTS.md from its sections."""
    text = "\n".join([*HEAD, "", *headlines(kept), "", ""])
    text += "\n\n".join(f"{MARK.format(name=name)}\n{kept[name]}" for name in BENCHMARKS if name in kept)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def main() -> int:
    """Command line; a benchmark that cannot run here is skipped with its reason."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--extrap-python", type=Path, metavar="PATH", help="interpreter of an environment with Extra-P")
    parser.add_argument("--cache", type=Path, metavar="FOLDER", help="keep Extra-P's answers there for the next run")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="the real measurements (default: ../shared/data)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the work; prints, and leaves RESULTS.md alone")
    parser.add_argument("--print", action="store_true", help="print, and leave RESULTS.md alone")
    parser.add_argument(
        "--worst", action="store_true", help="print the series with the largest errors that nothing warned of"
    )
    parser.add_argument("--freeze", action="store_true", help="record splits that are not frozen yet")
    safety = parser.add_argument_group("safety")
    safety.add_argument("--kills", type=int, default=Settings().kills, metavar="N", help="commands that are killed")
    safety.add_argument("--inputs", type=int, default=Settings().inputs, metavar="N", help="hostile inputs")
    safety.add_argument("--seed", default=Settings().seed, metavar="TEXT", help="which kills and inputs")
    safety.add_argument("--jobs", type=int, default=Settings().jobs, metavar="N", help="processes that read inputs")
    safety.add_argument("--keep", type=Path, metavar="FOLDER", help="what inputs came to, for the next run")
    chosen = parser.parse_args()
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is named {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    settings = Settings(
        extrap_python=chosen.extrap_python,
        quick=chosen.quick,
        freeze=chosen.freeze,
        cache=chosen.cache,
        kills=chosen.kills,
        inputs=chosen.inputs,
        seed=chosen.seed,
        jobs=chosen.jobs,
        keep=chosen.keep,
        **({} if chosen.data is None else {"data": chosen.data}),
    )
    if chosen.worst:
        from benchmarks.measured_series import worst
        from benchmarks.methods.engine import Engine

        print(worst(settings, Engine()))
        return 0
    kept: dict[str, str] = {}
    for name in chosen.names or BENCHMARKS:
        module = importlib.import_module(f"benchmarks.{name}")
        start = time.perf_counter()
        try:
            body = module.run(settings)
        except Skipped as reason:
            print(f"{name}: skipped, {reason}", file=sys.stderr)
            continue
        compared = chosen.extrap_python and name not in ("store", "choices", "million")
        extra = " Extra-P 4.2.5 in the same table." if compared else ""
        head = f"## {module.TITLE}\n\n{date.today():%Y-%m-%d}; {machine()}; {versions()}.{extra}"
        kept[name] = f"{head}\n\n{body}"
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
        if chosen.quick or chosen.print:
            print(kept[name], end="\n\n")
        else:
            # Read again: another benchmark may have ended while this one ran.
            now = sections(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
            write({**now, name: kept[name]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
