"""Ranks that share a cache: its bandwidth, and what it holds of more of them than were measured."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from machines import smooth

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, Run
from ranksight.model import modelfile
from ranksight.model.answers import Answer
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model
from ranksight.model.resource.equation import LEVELS
from ranksight.model.series.domains import Domains
from ranksight.model.sharing.caches import SharedCache
from ranksight.model.sharing.demand import Demand
from ranksight.model.uncertainty.forecast import Forecast
from ranksight.platforms import Platform, load

PLATFORM = "icelake-8360y"
"""36 cores of a socket share an L3; a node has two."""
RANKS = (1, 2, 4, 6, 9, 12, 18)


CAPACITY = 1.2e9
"""Loads of all ranks on an instance up to which the L3 of the machine made up here holds what they work on."""


def _served(ranks: int, size: float, growing: bool = True, stalled: bool = False) -> dict[str, float]:
    """What a rank of the cached kernel counts, and its seconds; each rank has as much to do as before, or less."""
    i = 1e9 * size / (1 if growing else ranks)
    outer, held = 0.01 * i, min(CAPACITY / (0.3 * i * min(ranks, 36)), 1.0) ** 2
    counts = {"loads_l1": 0.27 * i, "loads_l2": 0.02 * i, "loads_l3": outer * held, "loads_mem": outer * (1 - held)}
    waiting = 70 * counts["loads_l3"] + 214 * counts["loads_mem"] + 14 * counts["loads_l2"] + 5 * counts["loads_l1"]
    stalls = {"stall_cycles": 0.5 * waiting} if stalled else {}
    return {"time": (0.4 * i + 0.5 * waiting) / 2.4e9, "instructions": i, "loads": 0.3 * i, **counts, **stalls}


def _measured(path: Path, provenance: str = "measured", sizes: tuple[float, ...] = (1.0,), **more: bool) -> Experiment:
    made = Experiment.create(path, "cached", ["ranks", "size"] if len(sizes) > 1 else ["ranks"])
    for p in (1, 2, 3, 4):
        for size in sizes:
            cached = _served(p, size, **more)
            i = cached["instructions"]
            calm = {"loads_l1": 0.3 * i, "loads_l2": 0.0, "loads_l3": 0.0, "loads_mem": 0.0}
            calm |= {"time": 0.4 * i / 2.4e9, "instructions": i, "loads": 0.3 * i}
            rows = [{"kernel": name, "rank": -1, **row} for name, row in (("cached", cached), ("calm", calm))]
            at = {"ranks": float(p)} | ({"size": size} if len(sizes) > 1 else {})
            made.add(Run(at, provenance=dict.fromkeys(LEVELS, provenance)), pd.DataFrame(rows))
    return made


def _notes(model: Model, *point: float) -> list[str]:
    return [note for note in model.notes(np.array([point])) if "share an L3" in note]


def _times(model: Model, kernel: str, **at: float) -> Answer:
    (answer,) = (a for a in model.predict(metrics=["time"], **at).answers if a.kernel == kernel)
    return answer


@pytest.mark.parametrize("stalled", [True, False])
def test_more_to_hold_than_was_seen_opens_times_to_what_memory_takes(tmp_path: Path, stalled: bool) -> None:
    fit(_measured(tmp_path / "e", stalled=stalled), platform=PLATFORM).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    assert _notes(model, 4) == []
    (note,) = _notes(model, 12)
    assert note.startswith("12 ranks share an L3 of 56.6 MB, 4.72 MB each; in the runs 4 did, 14.2 MB each. ")
    assert "the data of cached was not measured" in note
    for ranks in (6, 12, 36):
        answer, true = _times(model, "cached", ranks=ranks), _served(ranks, 1.0)["time"]
        assert answer.lower < true < answer.upper
        assert answer.value < true  # nothing was seen of what the cache no longer holds
        calm = _times(model, "calm", ranks=ranks)
        assert calm.upper / calm.value < min(1.5, answer.upper / answer.value)
    spread = model.placed(None, 4)
    assert _notes(spread, 12) == []
    assert _times(spread, "cached", ranks=12).upper < _times(model, "cached", ranks=12).upper


@pytest.mark.parametrize("stalled", [True, False])
def test_what_larger_problems_counted_bounds_more_ranks(tmp_path: Path, stalled: bool) -> None:
    """Sizes 1 to 8 on 1 to 4 ranks: what 12 ranks of size 2 work on is less than what 4 of size 8 do."""
    model = fit(_measured(tmp_path / "e", sizes=(1.0, 2.0, 4.0, 8.0), stalled=stalled), platform=PLATFORM)
    for ranks, size in ((8, 1.0), (8, 2.0), (12, 2.0)):
        answer, true = _times(model, "cached", ranks=ranks, size=size), _served(ranks, size)["time"]
        assert answer.lower < true < answer.upper
    assert _notes(model, 12, 1.0)


def test_strong_scaling_on_an_instance_asks_it_to_hold_no_more(tmp_path: Path) -> None:
    model = fit(_measured(tmp_path / "e", growing=False), platform=PLATFORM)
    assert model.equation.cache.kernels
    assert _notes(model, 36) == []
    answer = _times(model, "cached", ranks=36)
    assert answer.value == pytest.approx(_served(36, 1.0, growing=False)["time"], rel=0.02)
    assert answer.upper / answer.value < 1.3


def test_random_replacement_in_its_closed_form() -> None:
    """mu = 1 - exp(-mu F / C): the part of the loads that a cache of C no longer serves of F."""
    cache = SharedCache("L3", 5e7, Domains(36, 2, 72), 1, ("k",), *np.array([[[1.0]], [[0.2]]]), np.array([0.5]))
    rows, value, blank = {("k", "loads"): 0}, np.ones((1, 3)), np.zeros((1, 3))
    said = Forecast(value, value, value, blank.astype(int), np.full(value.shape, ""), blank)
    more, worth = cache.spilled(said, rows, np.array([1.0, 2.0, 36.0]))
    assert worth.tolist() == [[False, True, True]]
    mu = more[0] / 0.4
    assert mu[0] == 0
    assert mu[1] == pytest.approx(1 - np.exp(-2 * mu[1]))
    assert 0.5 < mu[1] < mu[2] <= 1
    wider = replace(cache, demand=np.array([[1.0, 4.0]]), memory=np.array([[0.2, 0.6]]))
    more, _ = wider.spilled(said, rows, np.array([1.0, 2.0, 4.0]))  # as other runs counted: half way in ln F, and there
    assert more[0] == pytest.approx(0.5 * np.array([0.0, 0.2, 0.4]))


@pytest.mark.parametrize(("provenance", "platform"), [("simulated by callgrind", PLATFORM), ("measured", "generic")])
def test_nothing_is_reported_where_nothing_is_known(provenance: str, platform: str, tmp_path: Path) -> None:
    experiment = _measured(tmp_path / "e", provenance)
    model = fit(experiment, platform=platform) if platform != "generic" else fit(experiment)
    assert not model.equation.cache.kernels


def test_ranks_on_an_instance_follow_the_placement() -> None:
    machine = load(PLATFORM)
    instances = Domains.of_cache(machine, machine.caches[2], Domains.of(machine))
    assert (instances.cores, instances.count, instances.domain) == (36, 2, (0.0, 0.0))
    ranks = np.array([1.0, 8.0, 36.0, 72.0, 720.0])
    assert instances.active(ranks).tolist() == [1, 8, 36, 36, 36]
    assert instances.placed("scattered", None).active(ranks).tolist() == [1, 4, 18, 36, 36]
    assert instances.placed(None, 8).active(ranks).tolist() == [1, 8, 8, 8, 8]


def _machine() -> Platform:
    """The platform with an L3 that gives a third of what its 36 cores would read."""
    machine = load(PLATFORM)
    *rest, last = machine.caches
    return replace(machine, caches=(*rest, replace(last, bandwidth=25e9, bandwidth_shared=300e9)))


def _truth(p: int, hidden: float = 1.0, placement: str = "compact") -> tuple[float, float, float]:
    """Seconds, bytes through L3 and instructions of a rank of the resident kernel, by another law than the model's."""
    n = min(p, 36) if placement == "compact" else -(-p // 2)
    traffic, work = 5e13 / p, 3e12 / p
    return smooth(0.4 * work / 2.4e9 + traffic / 25e9, traffic / (300e9 * hidden), n), traffic, work


def _resident(
    path: Path,
    counter: str,
    part: float = 1.0,
    memory: float | None = 0.001,
    hidden: float = 1.0,
    provenance: dict[str, str] | None = None,
) -> Experiment:
    """A kernel that lives in L3, and one that computes, on up to half of an instance's cores.

    `part` of the traffic is counted, `memory` of it goes to memory as well; the cache gives `hidden` times what the
    platform says to this kernel.
    """
    made = Experiment.create(path, "resident", ["ranks"])
    for p in RANKS:
        time, traffic, work = _truth(p, hidden)
        if counter == "bytes_l3":
            counts = {"bytes_l3": part * traffic} | ({} if memory is None else {"bytes_mem": memory * traffic})
        else:
            counts = {"loads": work, "loads_l1": 0.4 * work, "loads_l2": 0.0, "loads_l3": part * traffic / 64}
            counts |= {} if memory is None else {"loads_mem": memory * traffic / 64}
        calm = {name: 0.3 * work if name == "loads" else 0.0 for name in counts}
        rows = [
            {"kernel": "resident", "rank": -1, "time": time, "instructions": work, **counts},
            {"kernel": "calm", "rank": -1, "time": 0.3 * work / 2.4e9, "instructions": work, **calm},
        ]
        made.add(Run({"ranks": p}, collector="made-up", provenance=provenance or {}), pd.DataFrame(rows))
    return made


def _asked(model: Model, ranks: int) -> Answer:
    (answer,) = (a for a in model.predict(ranks=ranks, metrics=["time"]).answers if a.kernel == "resident")
    return answer


@pytest.mark.parametrize(
    ("counter", "part", "hidden"),
    [("bytes_l3", 1.0, 1.0), ("bytes_l3", 2.0, 1.0), ("loads_l3", 0.6, 1.0), ("loads_l3", 1.0, 0.7)],
)
def test_a_node_from_half_of_an_instance(tmp_path: Path, counter: str, part: float, hidden: float) -> None:
    """Lines counted both ways, or not those fetched ahead; a kernel that draws less from the cache than readers do."""
    model = fit(_resident(tmp_path / "e", counter, part, hidden=hidden), platform=_machine())
    for ranks in (27, 36, 72):
        answer, (true, *_) = _asked(model, ranks), _truth(ranks, hidden)
        assert answer.ok
        assert answer.lower < true < answer.upper
        assert answer.value == pytest.approx(true, rel=0.1)
        assert "shared L3 bandwidth: instructions as the work, L3 traffic" in answer.evidence
    assert model.equation.cached is not None
    assert model.equation.cached.kernels == ("resident",)


@pytest.mark.parametrize("counter", ["bytes_l3", "loads_l3"])
def test_runs_are_met_parts_add_up_and_the_cache_is_named(tmp_path: Path, counter: str) -> None:
    fit(_resident(tmp_path / "e", counter), platform=_machine()).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    for ranks in RANKS:
        assert _asked(model, ranks).value == pytest.approx(_truth(ranks)[0], rel=0.02)
    scattered = model.placed("scattered")
    answer, (true, *_) = _asked(scattered, 18), _truth(18, placement="scattered")
    assert answer.value == pytest.approx(true, rel=0.1)
    assert answer.lower < true < answer.upper
    assert _asked(scattered, 72).value == pytest.approx(_asked(model, 72).value)
    broken = model.breakdown(np.array([[9.0], [72.0]]))
    assert broken.by_kernel.sum(axis=0) == pytest.approx(broken.total.value[0])
    at = broken.kernels.index("resident")
    assert broken.each["contention"][at, 1] > 0.3 * broken.by_kernel[at, 1]
    assert broken.each["loads_l3"][at, 1] > broken.each["loads_mem"][at, 1]
    diagnosis = model.diagnose(ranks=[36])
    table, roof = diagnosis.verdicts().set_index("kernel"), diagnosis.roofline().set_index(["kernel", "level"])
    assert table.loc["resident", ["verdict", "level", "change"]].tolist() == ["cache-bound", "L3", "caches"]
    assert table.loc["resident", "bandwidth_used"] == pytest.approx(1.0, abs=0.1)
    # Of what passes both ways a half is read.
    read = 0.5 if counter == "bytes_l3" else 1.0
    assert roof.loc[("resident", "L3"), "bandwidth"] == pytest.approx(read * 300e9 / 36, rel=0.05)
    assert roof.loc[("resident", "L3"), "fraction"] == pytest.approx(table.loc["resident", "bandwidth_used"])
    content = modelfile.read(tmp_path / "m.json")
    content["equation"]["laws"]["cached"]["resource"] = "L9"
    modelfile.write(tmp_path / "m.json", content, force=True)
    with pytest.raises(InputError, match="sharing"):
        Model.load(tmp_path / "m.json").predict(ranks=72)


MISSING: dict[str, dict[str, Any]] = {
    "what goes to memory": {"memory": None},
    "simulated": {"provenance": {"bytes_l3": "simulated by callgrind"}},
    "what the cache gives": {"platform": PLATFORM},
}


def test_what_goes_on_to_memory_is_memorys() -> None:
    demand = Demand.on(_machine())
    assert demand.cache
    memory = Demand.on_memory(_machine())
    assert memory.memory == pytest.approx(92.45e9 / 18)
    counts = {"time": [1.0, 2.0], "bytes_l3": [6e9, 8e9], "loads_l3": [1e7, 1e7], "bytes_mem": [3e9, 3e9]}

    def taken(**more: list[float]) -> bool:
        given = {name: np.array(values) for name, values in (counts | more).items()}
        traffic, other = (
            each.traffic(lambda _, name: given.get(name, np.full(2, np.nan)), "k") for each in (demand, memory)
        )
        assert np.isnan(traffic).all() or (traffic == given["bytes_l3"]).all()
        assert np.isnan(traffic).any() or np.isnan(other).any()  # one of both holds a kernel up
        return bool(np.isfinite(traffic).all())

    assert taken()  # 6 of 8.3 GB/s against 3 of 5.1
    assert not taken(bytes_mem=[4e9, 3e9])
    assert not taken(bytes_l3=[2e9, 2e9], bytes_mem=[0.0, 0.0])  # no core waits for another
    assert not taken(bytes_mem=[np.nan, np.nan])
    assert taken(bytes_mem=[np.nan, np.nan], loads_mem=[1e6, 1e6])


@pytest.mark.parametrize("what", MISSING)
def test_the_law_is_off_where_its_evidence_is_missing(tmp_path: Path, what: str) -> None:
    given = dict(MISSING[what])
    platform = given.pop("platform", _machine())
    assert fit(_resident(tmp_path / "e", "bytes_l3", **given), platform=platform).equation.cached is None


@pytest.mark.parametrize(
    "broken",
    [
        {"size": 0},
        {"domains": Domains(1, 72, 72).to_dict()},
        {"most": "x"},
        {"kernels": []},
        {"domains": {}},
        {"demand": [[1.0]]},
        {"demand": [[0.0, 1.0]]},
        {"memory": [[0.0, 2.0]]},
        {"memory": 1},
        {"outer": [2.0]},
        {"name": "<b>L9"},
    ],
)
def test_a_damaged_description_is_refused(broken: dict[str, object]) -> None:
    made = SharedCache("L3", 5e7, Domains(36, 2, 72), 4, ("k",), *np.array([[[1.0, 2.0]], [[0.0, 0.5]]]), np.ones(1))
    content = json.loads(json.dumps(made.to_dict()))
    assert SharedCache.from_dict(content).most == 4
    with pytest.raises(InputError):
        SharedCache.from_dict({**content, **broken})
