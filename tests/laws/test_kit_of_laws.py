"""The kit of laws: ours keep the contract, and faults are found."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.core.testing import check_law
from ranksight.model.laws.law import LAWS, SWITCHED_OFF, installed, registered

sys.path.insert(0, str(Path(__file__).parent))

PLATFORM = "haswell-e5-2680v3"
RANKS = (1, 2, 4, 8, 12, 24)


def row(kernel: str, p: int, stalls: bool) -> dict[str, float | str]:
    """Counts and seconds of a kernel with constant rates on the platform's 2.5 GHz."""
    i = 1e9 / p * (1 + 0.1 * (kernel == "second"))
    loads = {"loads_l1": 0.3 * i, "loads_l2": 0.02 * i, "loads_l3": 0.004 * i / p**0.2, "loads_mem": 1e-4 * i}
    stalled = 0.3 * (4 * loads["loads_l1"] + 12 * loads["loads_l2"] + 53 * loads["loads_l3"] + 227 * loads["loads_mem"])
    cycles = 0.6 * i + stalled
    counts = {"instructions": i, "cycles": cycles, **loads, "time": cycles / 2.5e9}
    more = {"stall_cycles": stalled} if stalls else {"bytes_mem_read": 0.8 * i, "bytes_mem_written": 0.2 * i}
    return {"kernel": kernel, "rank": -1, **counts, **more}


def sample(folder: Path, stalls: bool) -> Experiment:
    made = Experiment.create(folder, "made up", ["ranks"])
    for p in RANKS:
        messages = {"kernel": "messages", "rank": -1, "time": (1e-3 + 2e-3 * np.log2(p)) * (1 + 1e-4 * p)}
        rows = [row("first", p, stalls), row("second", p, stalls), messages]
        made.add(Run({"ranks": float(p)}, 0, "made"), pd.DataFrame(rows))
    return made


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Experiment]:
    folder = tmp_path_factory.mktemp("laws")
    return {stalls: sample(folder / f"{stalls}", stalls) for stalls in (True, False)}


@pytest.mark.parametrize(
    ("name", "stalls"),
    [
        ("function of time", True),
        ("cost per work", True),
        ("counted equation", True),
        ("messages", True),
        ("constant CPI", False),
        ("fitted equation", False),
        pytest.param("shared bandwidth", False, marks=pytest.mark.slow),
    ],
)
def test_our_laws_keep_the_contract(samples: dict[bool, Experiment], name: str, stalls: bool) -> None:
    found = check_law(name, samples[stalls], PLATFORM)
    assert found.answers.any()


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The law of another package, registered while the test runs."""
    list(LAWS)
    monkeypatch.setattr(LAWS, "_items", dict(LAWS._items))
    monkeypatch.delitem(sys.modules, "outside", raising=False)
    import outside

    return outside


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("", ""),
        ("at", r"at\(\) raises KeyError"),
        ("nan", "times that it answers are not finite"),
        ("shape", "is not of 3 kernels at"),
        ("later", "it claims kernels that have no time: someone else's"),
        ("negative", "part execution is negative"),
        ("part", "its parts magic are none of execution"),
        ("truth", "its answers have to be truth values"),
        ("claims", "it claims kernels that were not measured"),
    ],
)
def test_the_kit_of_laws_finds_faults(
    samples: dict[bool, Experiment], outside: ModuleType, monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setattr(outside, "FAULT", fault)
    if not message:
        assert check_law("Amdahl", samples[True]).answers.all()
        return
    with pytest.raises(AssertionError, match=message):
        check_law("Amdahl", samples[True])


def test_laws_state_their_prior_and_source(outside: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(installed())[-1] == "Amdahl"  # by rising prior
    assert not SWITCHED_OFF
    monkeypatch.setattr("ranksight.model.laws.law.SWITCHED_OFF", frozenset({"Amdahl"}))
    assert set(installed()) - set(registered()) == {"Amdahl"}
    for name, value, message in (("prior", 2.0, "prior is 2.0"), ("source", "", "source is not a line of text")):
        with monkeypatch.context() as context:
            context.setattr(outside.Amdahl, name, value)
            with pytest.raises(AssertionError, match=message):
                check_law("Amdahl", "nowhere")
    with pytest.raises(AssertionError, match="no law is registered under 'magic'"):
        check_law("magic", "nowhere")
