"""More ranks to a shared cache than were measured: told, with the kernels that it serves."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.errors import InputError
from ranksight.experiment import Experiment, Run
from ranksight.model.assembly import fit
from ranksight.model.model import Model
from ranksight.model.sharing.caches import SharedCache, ranks_on
from ranksight.model.sharing.domains import Domains

PLATFORM = "icelake-8360y"
"""36 cores of a socket share an L3; a node has two."""


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
    node = Domains(18, 4, 72)
    ranks = np.array([1.0, 8.0, 36.0, 72.0, 720.0])
    assert ranks_on(node, 36, ranks).tolist() == [1, 8, 36, 36, 36]
    assert ranks_on(dataclasses.replace(node, placement="scattered"), 36, ranks).tolist() == [1, 4, 18, 36, 36]
    assert ranks_on(dataclasses.replace(node, ranks_per_node=8), 36, ranks).tolist() == [1, 8, 8, 8, 8]


@pytest.mark.parametrize("broken", [{"size": 0}, {"sharers": 1}, {"most": "x"}, {"kernels": []}, {"domains": {}}])
def test_a_damaged_description_is_refused(broken: dict[str, object]) -> None:
    content = json.loads(json.dumps(SharedCache("L3", 5e7, 36, Domains(18, 4, 72), 4, ("k",)).to_dict()))
    assert SharedCache.from_dict(content).most == 4
    with pytest.raises(InputError):
        SharedCache.from_dict({**content, **broken})
