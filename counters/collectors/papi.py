"""PAPI's high-level interface: regions of a program that calls PAPI_hl_region_begin and PAPI_hl_region_end.

The environment names the events and the folder of the result. A run counts four events in addition to cycles and
instructions, so that none is multiplexed.

Source: PAPI 7, high-level API: ``PAPI_EVENTS``, ``PAPI_OUTPUT_DIRECTORY``.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ranksight.campaign.collecting import COLLECTORS, Availability, Step
from ranksight.campaign.launching import Launch
from ranksight.core.errors import ToolError
from ranksight.core.reading import Reading
from ranksight.counters.collectors._ranks import joined, ranks_in_words
from ranksight.counters.installing import how_to_install
from ranksight.counters.readers.papi_json import READER

ALWAYS = ("PAPI_TOT_CYC", "PAPI_TOT_INS")
AT_ONCE = 4


@dataclass
class Papi:
    """Events per region and rank of an instrumented program; see the module.

    `events`: in addition to cycles and instructions; those that the machine lacks are left out.
    """

    events: tuple[str, ...] = (
        *("PAPI_LD_INS", "PAPI_SR_INS", "PAPI_L1_LDM", "PAPI_L2_LDM"),
        *("PAPI_L3_LDM", "PAPI_MEM_SCY", "PAPI_DP_OPS", "PAPI_SP_OPS"),
    )
    text: str = "regions of a program instrumented with PAPI's high-level interface"
    deterministic: bool = False
    default: bool = False
    presets: frozenset[str] | None = None

    def available(self) -> Availability:
        """Whether PAPI's tools are here and find events."""
        if shutil.which("papi_avail") is None:
            return Availability(False, "papi is not installed", how_to_install("papi_avail"))
        if not self._presets():
            why = "'papi_component_avail' says why; without a PMU there is no remedy"
            return Availability(False, "papi finds no event of this processor", why)
        return Availability(True)

    def _presets(self) -> frozenset[str]:
        if self.presets is None:
            done = subprocess.run(
                ["papi_avail", "-a"], capture_output=True, text=True, errors="replace", check=False, timeout=60
            )
            self.presets = frozenset(re.findall(r"(?m)^(PAPI_\w+)\s+0x", done.stdout))
        return self.presets

    def passes(self) -> list[tuple[str, ...]]:
        """Events of each run."""
        known = self._presets()
        others = [event for event in self.events if not event.startswith("PAPI_") or event in known]
        groups = [others[start : start + AT_ONCE] for start in range(0, len(others), AT_ONCE)] or [[]]
        return [(*ALWAYS, *group) for group in groups]

    def steps(self, launch: Launch, folder: Path) -> Sequence[Step]:
        """One run a pass, with the environment set in front of the program on every rank."""
        steps = []
        for number, events in enumerate(self.passes()):
            place = folder.resolve() / f"pass{number}"
            prefix = ("env", f"PAPI_EVENTS={','.join(events)}", f"PAPI_OUTPUT_DIRECTORY={place}")
            steps.append(Step(launch.wrap(prefix)))
        return steps

    def collect(self, launch: Launch, folder: Path) -> Reading:
        """Read every pass; what several count is taken from the first."""
        found = joined(self._read(launch, folder), launch)
        if found is None:
            raise ToolError("PAPI left no region", "the program must call PAPI_hl_region_begin and PAPI_hl_region_end")
        return found

    def _read(self, launch: Launch, folder: Path) -> Iterator[Reading]:
        for number, events in enumerate(self.passes()):
            place = folder / f"pass{number}"
            found = sorted(path for path in place.glob("papi_hl_output*") if path.is_dir()) if place.is_dir() else []
            if not found:
                raise ToolError(
                    f"PAPI left nothing in {place.name} for {shlex.join(events)}",
                    "the program must call PAPI_hl_region_begin and PAPI_hl_region_end",
                )
            for reading in READER.read(found[-1]):
                if reading.counters is None:
                    raise ToolError(f"{found[-1]} holds no counters", "measure this run again")
                missing = sorted(set(range(launch.ranks)) - set(reading.counters["rank"]))
                if missing:
                    raise ToolError(f"PAPI left nothing for {ranks_in_words(missing)} of {launch.ranks}")
                yield reading


COLLECTORS.register("papi")(Papi())
