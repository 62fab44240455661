"""Ranks that share a cache: its bandwidth, and more ranks to it than were measured."""

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

from ranksight.errors import InputError
from ranksight.experiment import Experiment, Run
from ranksight.model.answers import Answer
from ranksight.model.assembly import fit
from ranksight.model.model import Model
from ranksight.model.sharing.caches import SharedCache
from ranksight.model.sharing.demand import Demand
from ranksight.model.sharing.domains import Domains
from ranksight.platforms import Platform, load

PLATFORM = "icelake-8360y"
"""36 cores of a socket share an L3; a node has two."""
RANKS = (1, 2, 4, 6, 9, 12, 18)


def _measured(path: Path, provenance: str, ranks: tuple[int, ...] = (1, 2, 4, 8)) -> Experiment:
    made = Experiment.create(path, "cached", ["ranks"])
    for p in ranks:
        i = 1e9 / p
        served = {"loads_l1": 0.27 * i, "loads_l2": 0.02 * i, "loads_l3": 0.009 * i, "loads_mem": 0.001 * i}
        calm = {"loads_l1": 0.3 * i, "loads_l2": 0.0, "loads_l3": 0.0, "loads_mem": 0.0}
        rows = [
            {"kernel": kernel, "rank": -1, "time": 0.6 * i / 2.4e9, "instructions": i, "loads": 0.3 * i, **loads}
            for kernel, loads in (("cached", served), ("calm", calm))
        ]
        made.add(Run({"ranks": p}, provenance=dict.fromkeys(served, provenance)), pd.DataFrame(rows))
    return made


def _notes(model: Model, ranks: float) -> list[str]:
    return [note for note in model.notes(np.array([[ranks]])) if "share an L3" in note]


def test_more_ranks_to_a_cache_than_were_measured_are_told(tmp_path: Path) -> None:
    fit(_measured(tmp_path / "e", "measured"), platform=PLATFORM).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    assert _notes(model, 8) == []
    (note,) = _notes(model, 72)
    assert note.startswith("36 ranks share an L3 of ")
    assert "of 56.6 MB, 1.57 MB each; in the runs 8 did, 7.08 MB each: what it holds of cached then" in note
    assert "calm" not in note


@pytest.mark.parametrize(("provenance", "platform"), [("simulated by callgrind", PLATFORM), ("measured", "generic")])
def test_nothing_is_told_where_nothing_is_known(provenance: str, platform: str, tmp_path: Path) -> None:
    experiment = _measured(tmp_path / "e", provenance)
    model = fit(experiment, platform=platform) if platform != "generic" else fit(experiment)
    assert "caches" not in model.extras


def test_ranks_on_an_instance_follow_the_placement() -> None:
    machine = load(PLATFORM)
    instances = Domains.of_cache(machine, machine.cache(3), Domains.of(machine))
    assert (instances.cores, instances.count, instances.domain) == (36, 2, None)
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
        assert answer.evidence.startswith("shared L3 bandwidth: instructions as the work, L3 traffic")
    assert model.equation.cached is not None
    assert model.equation.cached.kernels == ("resident",)


@pytest.mark.parametrize("counter", ["bytes_l3", "loads_l3"])
def test_runs_are_met_parts_add_up_and_the_cache_is_named(tmp_path: Path, counter: str) -> None:
    fit(_resident(tmp_path / "e", counter), platform=_machine()).save(tmp_path / "m.json")
    model = Model.load(tmp_path / "m.json")
    for ranks in RANKS:
        assert _asked(model, ranks).value == pytest.approx(_truth(ranks)[0], rel=0.02)
    scattered = model.placed("scattered")
    assert _asked(scattered, 18).value == pytest.approx(_truth(18, placement="scattered")[0], rel=0.03)
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
    assert roof.loc[("resident", "L3"), "bandwidth"] == pytest.approx(300e9 / 36)
    content = json.loads((tmp_path / "m.json").read_text())
    content["extras"]["application"]["cached"]["resource"] = "L9"
    (tmp_path / "m.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="sharing"):
        Model.load(tmp_path / "m.json").predict(ranks=72)


MISSING: dict[str, dict[str, Any]] = {
    "what goes to memory": {"memory": None},
    "simulated": {"provenance": {"bytes_l3": "simulated by callgrind"}},
    "what the cache gives": {"platform": PLATFORM},
}


def test_what_goes_on_to_memory_is_memorys() -> None:
    demand = Demand.on(_machine())
    assert demand is not None
    assert (demand.core, demand.rival) == pytest.approx((300e9 / 36, 92.45e9 / 18))
    counts = {"time": [1.0, 2.0], "bytes_l3": [6e9, 8e9], "loads_l3": [1e7, 1e7], "bytes_mem": [3e9, 3e9]}

    def taken(**more: list[float]) -> bool:
        given = {name: np.array(values) for name, values in (counts | more).items()}
        traffic = demand.traffic(lambda _, name: given.get(name, np.full(2, np.nan)), "k")
        assert np.isnan(traffic).all() or (traffic == given["bytes_l3"]).all()
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
    "broken", [{"size": 0}, {"domains": Domains(1, 72, 72).to_dict()}, {"most": "x"}, {"kernels": []}, {"domains": {}}]
)
def test_a_damaged_description_is_refused(broken: dict[str, object]) -> None:
    content = json.loads(json.dumps(SharedCache("L3", 5e7, Domains(36, 2, 72), 4, ("k",)).to_dict()))
    assert SharedCache.from_dict(content).most == 4
    with pytest.raises(InputError):
        SharedCache.from_dict({**content, **broken})
