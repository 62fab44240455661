"""Models of experiments whose truth is known, diagnosed from end to end."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ranksight.errors import InputError
from ranksight.model.assembly import assemble
from ranksight.model.diagnosis.ceilings import Ceilings
from ranksight.model.model import Model
from ranksight.platforms import Platform, load


def _made_up() -> ModuleType:
    place = Path(__file__).parent.parent / "model" / "made_up.py"
    spec = importlib.util.spec_from_file_location("made_up_for_diagnosis", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


made_up = _made_up()


@pytest.fixture(scope="module")
def platform() -> Platform:
    return load("icelake-8360y")


@pytest.fixture(scope="module")
def buggy(tmp_path_factory: pytest.TempPathFactory, platform: Platform) -> Model:
    folder = tmp_path_factory.mktemp("bug") / "e"
    return assemble(made_up.write(folder, (1, 2, 4, 8), (12, 24), platform, bug=True), platform=platform)[0]


def test_a_planted_bug_is_named_and_becomes_the_largest(buggy: Model) -> None:
    found = buggy.diagnose(ranks=[8, 100_000], size=12)
    assert not found.strong
    scaling = found.scaling().set_index("kernel")
    assert scaling.loc["search", "verdict"] == "grows"
    assert scaling["named"].to_dict() == {"search": True, "stencil": False, "pack": False} | {
        name: False for name in scaling.index if name not in ("search", "stencil", "pack")
    }
    # 300 instructions a rank against 36,720 and stalls in the same proportion: 123 ranks, loads of L2 aside.
    crossing = found.crossovers()
    top = crossing[crossing["largest"]].iloc[0]
    assert (top["kernel"], top["over"]) == ("search", "stencil")
    assert top["lower"] < top["ranks"] < top["upper"]
    assert top["ranks"] == pytest.approx(made_up.stencil(12) / 300, rel=0.1)
    advice = found.advice()
    assert advice["kind"].iloc[0] == "growth"
    assert advice["kernel"].iloc[0] == "search"
    assert advice["saves"].iloc[0] > 0.9


def test_shares_of_a_configuration_sum_to_one_and_the_table_is_ordered(buggy: Model) -> None:
    rows = buggy.diagnose(ranks=[8, 64], size=[12, 24]).verdicts()
    for _, part in rows.groupby(["ranks", "size"]):
        assert part["share"].sum() == pytest.approx(1)
        assert part["time"].is_monotonic_decreasing
    assert len(rows) == 4 * rows["kernel"].nunique()


def test_what_is_told_is_plain_data(buggy: Model, tmp_path: Path) -> None:
    found = buggy.diagnose(ranks=64, size=12).to_dict()
    assert found["schema_version"] == 1
    text = json.dumps(found, allow_nan=False)
    assert {row["kernel"] for row in json.loads(text)["scaling"]} >= {"search", "stencil", "pack"}
    buggy.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json").diagnose(ranks=64, size=12).to_dict()
    for one, other in zip(found["verdicts"], again["verdicts"], strict=True):
        assert one["verdict"] == other["verdict"]
        assert one["time"] == pytest.approx(other["time"], rel=1e-4)


@pytest.mark.parametrize("ranks", [0, -3, 1.5])
def test_there_are_no_such_ranks(buggy: Model, ranks: float) -> None:
    with pytest.raises(InputError, match="no number of ranks"):
        buggy.diagnose(ranks=ranks, size=12)


def test_ceilings_come_back_and_damage_is_found(platform: Platform) -> None:
    found = Ceilings.of(platform)
    again = Ceilings.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.bandwidth == pytest.approx(found.bandwidth, nan_ok=True)
    assert again.share(np.array([1, 18, 72]))[3] == pytest.approx([15.37e9, 92.45e9 / 18, 92.45e9 / 18])
    for damage in ({"latency": [1, 2]}, {"frequency": 0}, {"bandwidth": "x"}, {"cores": None}, {"line": -1}):
        with pytest.raises(InputError, match="ceilings"):
            Ceilings.from_dict({**found.to_dict(), **damage})
