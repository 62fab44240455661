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


def test_the_pair_of_figure_8_is_distinguished(papers: ModuleType) -> None:
    found = papers.figure_8().set_index(["kernel", "ranks"])
    assert found["cpi"].to_numpy() == pytest.approx(0.6, rel=2e-3)
    for kernel, ends in published.FIGURE_8.items():
        for ranks, factor in zip(published.FIGURE_8_RANKS, ends, strict=True):
            assert found.loc[(kernel, ranks), "bf_mem"] == pytest.approx(factor, rel=0.03)
    waits = found["bf_mem"]
    assert waits["stress", 2] > 4 * waits["transport_integral", 2], "memory holds up stress more where ranks are few"
    assert waits["transport_integral", 20] > 1.3 * waits["stress", 20], "and transport_integral where they are many"
    assert waits["stress", 2] / waits["stress", 20] == pytest.approx(21, rel=0.06)
    assert waits["transport_integral", 2] / waits["transport_integral", 20] == pytest.approx(3, rel=0.06)
    # 42 and 9 % of 1.02 cycles of latency an instruction, of 0.6 cycles in all.
    assert found.loc[("stress", 2), "memory"] == pytest.approx(0.42 * 1.02 / 0.6, rel=0.02)
    assert found.loc[("transport_integral", 2), "memory"] == pytest.approx(0.09 * 1.02 / 0.6, rel=0.02)
    assert found.loc[("stress", 20), "memory"] == pytest.approx(0.02 * 1.02 / 0.6, rel=0.05)
    assert found.loc[("transport_integral", 20), "memory"] == pytest.approx(0.03 * 1.02 / 0.6, rel=0.05)


def test_the_page_is_what_is_computed(papers: ModuleType) -> None:
    assert (ROOT / "docs" / "papers.md").read_text() == papers.text(), "run python docs/papers.py"
    assert (ROOT / "docs" / "papers-expectations.md").read_text() == papers.expectations(), "run python docs/papers.py"
