"""The kit of collectors: what it says of itself, its commands, and what it makes of a folder without files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ranksight.campaign.collecting import Availability, Collector, Step
from ranksight.campaign.launching import Launch, Template
from ranksight.campaign.measuring import execute
from ranksight.core.errors import ContractError, InputError, RanksightError, ToolError
from ranksight.core.reading import Reading, validated

COMMAND = ("mpirun", "-n", "{ranks}", "/bin/true")
"""The command that a collector is asked to measure where none is given; it is not run."""
TIMEOUT = 600.0


def check_collector(collector: Collector, launch: Launch | None = None) -> None:
    """Check that a collector keeps the contract of :class:`ranksight.campaign.collecting.Collector`.

    Parameters
    ----------
    launch : Launch, optional
        A command to measure, such as ``Template(("mpirun", "-n", "{ranks}", "./heat")).fill({"ranks": 2})``. Without
        it nothing is run, and only what the collector says is checked.

    Raises
    ------
    AssertionError
        - ``text`` is a line, ``deterministic`` and ``default`` are True or False;
        - ``available`` gives an Availability, with reason and remedy where it is not ok;
        - ``steps`` gives one or more executions whose commands hold the program with its arguments, or raises
          InputError or ToolError; asked twice, they are the same;
        - where it is available, ``collect`` of an empty folder raises InputError or ToolError in one line;
        - with `launch`, and where it is available: all executions end with status 0, and what is collected is a valid
          :class:`~ranksight.core.reading.Reading` with a provenance for every metric.
    """
    assert isinstance(collector.text, str), "text is a str: what the collector measures, for the listing"
    assert collector.text.strip(), "text says what the collector measures, for the listing"
    assert "\n" not in collector.text, "text is one line"
    for name in ("deterministic", "default"):
        assert isinstance(getattr(collector, name), bool), f"{name} is True or False"
    state = collector.available()
    assert isinstance(state, Availability), "available() gives an Availability"
    assert state.ok or (state.reason and state.remedy), "a collector that cannot work says why, and what would help"
    asked = launch or Template(COMMAND).fill({"ranks": 2})
    with tempfile.TemporaryDirectory() as folder:
        if not state.ok:
            return
        empty, place = Path(folder) / "empty", Path(folder) / "run"
        empty.mkdir()
        place.mkdir()
        _refuses(collector, asked, empty)
        steps = _steps(collector, asked, place)
        if launch is None:
            return
        for index, step in enumerate(steps):
            execute(step, place / f"output-{index}.txt", TIMEOUT)
        _check_reading(collector.collect(asked, place))


def _steps(collector: Collector, launch: Launch, folder: Path) -> list[Step]:
    """The executions, if they are some; none where an error says that this command cannot be measured."""
    try:
        steps, again = list(collector.steps(launch, folder)), list(collector.steps(launch, folder))
    except (InputError, ToolError) as error:
        _one_line(error)
        return []
    assert steps, "steps() gives one execution at least"
    assert steps == again, "steps() gives other executions when it is asked again"
    program = launch.command[launch.program_at :]
    for step in steps:
        assert isinstance(step, Step), "steps() gives Steps"
        assert all(isinstance(word, str) for word in step.command), "a command consists of str"
        assert step.command[-len(program) :] == program, f"the command does not end with {' '.join(program)}"
        assert all(isinstance(x, str) for pair in step.environment.items() for x in pair), "variables are str"
    return steps


def _refuses(collector: Collector, launch: Launch, empty: Path) -> None:
    try:
        collector.collect(launch, empty)
    except (InputError, ToolError) as error:
        _one_line(error)
    except Exception as error:
        raise AssertionError(f"collect() of an empty folder raises {type(error).__name__}: {error}") from error
    else:
        raise AssertionError("collect() of an empty folder raises no error")


def _one_line(error: RanksightError) -> None:
    text = str(error)
    assert not isinstance(error, ContractError), text
    assert "\n" not in text, f"the error has several lines: {text}"


def _check_reading(reading: Reading) -> None:
    try:
        validated(reading, "what was collected")
    except RanksightError as error:
        raise AssertionError(str(error)) from error
    assert reading.counters is not None or reading.messages is not None or reading.tables, "a reading without any table"
    if reading.counters is not None:
        missing = [name for name in reading.counters.columns[2:] if name not in reading.provenance]
        assert not missing, f"no provenance is given for {', '.join(map(str, missing))}"
