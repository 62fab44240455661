"""Patterns distinguished by tags, on tables of known rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.comm.patterns.distances import Shift
from ranksight.comm.patterns.grid import Cartesian
from ranksight.comm.patterns.roles import Everyone, Transpose
from ranksight.comm.patterns.rule import Rule
from ranksight.comm.patterns.steps import Step
from ranksight.core.experiment import Experiment, Run
from ranksight.model.messages.fit_messages import fit_messages
from ranksight.model.messages.message_model import Messages
from ranksight.model.messages.observations import MOST_CLASSES, tag_classes

HALO = tuple(Step(v, False, False, True) for v in ((-1, 0), (1, 0), (0, -1), (0, 1)))
Tagged = Mapping[int, Sequence[Rule]]


def links(rules: Tagged, ranks: int) -> pd.DataFrame:
    """Links and their tags."""
    parts = [
        pd.DataFrame({"rank": found.source, "peer": found.target, "tag": tag})
        for tag, each in rules.items()
        for rule in each
        for found in [rule.links(ranks)]
    ]
    return pd.concat(parts, ignore_index=True)


def classes(rules: Callable[[int], Tagged], runs: Sequence[int]) -> list[tuple[int, ...]]:
    """Classes of tags where runs of so many ranks follow the rules."""
    return tag_classes({i: links(rules(p), p) for i, p in enumerate(runs)}, dict(enumerate(runs)))


def learned(folder: Path, rules: Tagged, runs: Sequence[int] = (4, 9, 16, 25)) -> Messages:
    """Messages fitted to traces of one kernel's sends; a message of tag t has 100 t bytes."""
    experiment = Experiment.create(folder / "made.exp", "made-up", ["ranks"])
    for p in runs:
        moved = links(rules, p)
        size = 100 * moved["tag"].abs()
        moved = moved.assign(kernel="exchange", operation="Send", comm_size=p, bytes=size, count=1)
        peers = moved.assign(size_class=np.left_shift(1, np.ceil(np.log2(size)).astype(int)))
        keys = ["kernel", "rank", "operation", "comm_size", "size_class"]
        peers = peers.groupby([*keys, "peer"])[["count", "bytes"]].sum().reset_index()
        rows = peers.groupby(keys)[["count", "bytes"]].sum().reset_index().assign(seconds=0.0, peers=1)
        whole = pd.DataFrame({"kernel": "(whole program)", "rank": range(p), "messages": 1.0})
        experiment.add(Run({"ranks": p}, collector="pmpi"), whole, rows, tables={"peers": peers, "events": moved})
    found = fit_messages(experiment)
    assert found is not None
    return found


def said(messages: Messages, ranks: int) -> dict[str, str]:
    """Rules by tags."""
    table = messages.predict(np.array([float(ranks)]))
    assert {row.reason for row in table.rows} == {""}
    return {row.tags: row.to for row in table.rows}


def test_each_pattern_is_reported_by_its_tag(tmp_path: Path) -> None:
    rules = {1: HALO, 2: [Transpose(True)], 3: [Shift(1)], 4: [Everyone(1, 0, False)]}
    found = said(learned(tmp_path, rules), 36)
    assert found == {
        "1": "-x, +x, -y, +y on a 2-d grid",
        "2": "row and column exchanged on a square grid",
        "3": "rank + 1 (mod ranks)",
        "4": "every rank to every other",
    }


def test_tags_of_directions_are_one_exchange(tmp_path: Path) -> None:
    found = said(learned(tmp_path, {tag: [rule] for tag, rule in enumerate(HALO, 1)}), 36)
    assert found == {"": "-x, +x, -y, +y on a 2-d grid"}


def test_two_rings_are_two_patterns(tmp_path: Path) -> None:
    found = said(learned(tmp_path, {5: [Shift(1)], 6: [Shift(1)], 7: [Shift(-1)]}), 36)
    assert found == {"5 6": "rank + 1 (mod ranks)", "7": "rank - 1 (mod ranks)"}


def test_a_direction_that_few_ranks_lack_is_no_lack(tmp_path: Path) -> None:
    """A line of ranks has no neighbours in the second dimension: the tag is not there, and need not be."""
    rules = {1: HALO[:2], 2: HALO[2:], 3: [Shift(1)]}
    found = said(learned(tmp_path, rules, (3, 8, 16, 27)), 36)
    assert found == {"1": "-x, +x on a 2-d grid", "2": "-y, +y on a 2-d grid", "3": "rank + 1 (mod ranks)"}


def test_the_model_keeps_tags(tmp_path: Path) -> None:
    messages = learned(tmp_path, {1: HALO, 3: [Shift(1)]})
    again = Messages.from_dict(messages.to_dict())
    assert said(again, 49) == said(messages, 49)


@pytest.mark.parametrize(
    "rules",
    [
        lambda p: {tag: [Shift(1)] for tag in range(50)},  # the number of a step
        lambda p: {tag: [Shift(tag)] for tag in range(1, p)},  # the number of a rank
        lambda p: {7: [Shift(1), Shift(2)]},
        lambda p: {p: [Shift(1)], p + 1: [Shift(2)]},
        lambda p: {tag: [Shift(tag)] for tag in range(1, MOST_CLASSES + 2)},
    ],
)
def test_other_numbers_are_no_patterns(rules: Callable[[int], Tagged]) -> None:
    assert classes(rules, (36, 49)) == [()]


def test_tags_that_some_runs_lack_are_no_help() -> None:
    rules = {1: [Shift(1)], 2: [Shift(2)]}
    tables = {0: links(rules, 8), 1: links(rules, 9).drop(columns="tag")}
    assert tag_classes(tables, {0: 8, 1: 9}) == [()]


def test_a_box_that_is_cut_as_a_plane_is_in_doubt(tmp_path: Path) -> None:
    """Nine ranks show that the domain ends; 12 would be cut into 4 x 3 or 3 x 2 x 2."""
    plane = Cartesian(2, (False, False))

    def halo(ranks: int) -> pd.DataFrame:
        faces = 12000 * plane.faces(ranks) / np.array([4.0, 3.0])
        rank, peer = np.array(sorted(plane.pairs(ranks))).T
        size = faces[(np.abs(peer - rank) == 1).astype(int) if plane.extents(ranks)[1] > 1 else 0 * rank]
        return pd.DataFrame({"rank": rank, "peer": peer, "bytes": size.astype(int), "count": 1})

    def doubts(folder: Path, runs: Sequence[int]) -> set[str]:
        experiment = Experiment.create(folder, "made-up", ["ranks"])
        for p in runs:
            sent = halo(p).assign(kernel="exchange", operation="Send", comm_size=p, size_class=4096)
            rows = sent.groupby(["kernel", "rank", "operation", "comm_size", "size_class"])[["count", "bytes"]].sum()
            whole = pd.DataFrame({"kernel": "(whole program)", "rank": range(p), "messages": 1.0})
            rows = rows.reset_index().assign(seconds=0.0, peers=1)
            experiment.add(Run({"ranks": p}, collector="pmpi"), whole, rows, tables={"peers": sent})
        found = fit_messages(experiment)
        assert found is not None
        return {row.reason for row in found.predict(np.array([27.0])).rows}

    (reason,) = doubts(tmp_path / "few.exp", (2, 4, 8, 9))
    assert "3-d grid, blocks of least surface" in reason
    assert doubts(tmp_path / "more.exp", (2, 4, 8, 9, 12)) == {""}
