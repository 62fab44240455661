"""Published numbers that the package must give again, and the page in docs that shows them."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import published
import pytest

from ranksight.model.spaces.pmnf import EXPONENTS, LOGARITHMS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def papers() -> ModuleType:
    """docs/papers.py."""
    spec = importlib.util.spec_from_file_location("papers_page", ROOT / "docs" / "papers.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def facts(shared: Path) -> dict:
    """Numbers recomputed from the papers' own tables."""
    return json.loads((shared / "papers" / "facts.json").read_text())


def test_work_per_rank_of_homme(papers: ModuleType, facts: dict) -> None:
    found = papers.work_per_rank()
    for size, points in facts["ding_x"].items():
        assert found[int(size.removeprefix("ne"))] == pytest.approx({int(p): x for p, x in points.items()}, rel=1e-8)


def test_the_target_of_table_4_is_not_the_stated_one(facts: dict) -> None:
    targets = [published.target_of(kernel) for kernel in published.QUADRATIC]
    low, high = facts["homme_table4_pt"]
    assert (round(min(targets)), round(max(targets))) == (low, high)
    assert min(targets) > 1.39 * published.STATED_TARGET


def test_terms_of_the_normal_form(facts: dict) -> None:
    assert len(EXPONENTS) * len(LOGARITHMS) == facts["calotoiu_tuples"]


def test_table_1_is_one_of_shares() -> None:
    """Constant kernels have the inverse growth of the whole; the one printed otherwise is constant too."""
    constant = [name for name, (_, _, model, _) in published.SWEEP3D.items() if "^" not in model]
    assert {published.SWEEP3D[name][1] for name in constant if name != "source"} == {0.23}
    assert published.SWEEP3D["source"][1] == 0.04
    assert sum(share for share, *_ in published.SWEEP3D.values()) == pytest.approx(100, abs=0.5)


def test_printed_models_are_evaluated(papers: ModuleType) -> None:
    assert papers.evaluated(published.MILC["MPI_Allreduce"][0], p=published.MILC_RANKS) == pytest.approx(1.6128e-3)
    assert papers.evaluated(published.SWEEP3D["sweep -> MPI_Recv"][2], p=262_144) == pytest.approx(2042.88)
    ratios = {
        name: papers.evaluated(f"({each})*({calls})/({flops})", V=81.0)
        for name, (flops, calls, each) in published.MILC_FLOPS.items()
    }
    assert {name for name, ratio in ratios.items() if abs(ratio - 1) > 0.0025} == {"ks_congrad"}


def test_fit_finds_the_power_of_the_message_size(papers: ModuleType, facts: dict) -> None:
    assert {int(v) for v in facts["milc_bytes"]} == set(published.GRID_POINTS)
    assert "`72 * V^(3/4)`" in "\n".join(papers.milc())


def test_idle_times_of_the_layouts(papers: ModuleType) -> None:
    text = "\n".join(papers.layouts_of_openfoam())
    assert "| (3, 2, 2) | 3 | 3.33 | 18.72 | 42.3 |" in text  # 20 pairs of neighbours of 12 ranks
    assert "| (4, 3, 1) | 2 | 2.83 | 5.65 | 4.82 |" in text  # 17
    assert "factor of 3.31, its variance by 8.78" in text


def test_the_page_is_what_is_computed(papers: ModuleType) -> None:
    assert (ROOT / "docs" / "papers.md").read_text() == papers.text(), "run python docs/papers.py"
    assert (ROOT / "docs" / "papers-expectations.md").read_text() == papers.expectations(), "run python docs/papers.py"
