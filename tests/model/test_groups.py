"""Messages within groups of a fixed number of ranks and between the first ranks of these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.series.reducing import Series
from ranksight.model.structure.ranklaws import fit_rank_laws
from ranksight.model.structure.rankterms import GROUPS, RANK_TERMS, in_groups
from ranksight.model.structure.traced import read_called

COLUMNS = ["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers"]


def hierarchy(folder: Path, group: int) -> Experiment:
    """Sums within groups, between their first ranks, a tree of sends between these, and a sum of all ranks."""
    made = Experiment.create(folder / "exp", "app", ["ranks", "size"])
    for p in (1, 2, 4, 8):
        leaders = range(0, p, group)
        for size in (8, 16, 24):
            rows: list[tuple[object, ...]] = []
            for r in range(p):
                rows.append(("within", r, "Reduce", min(group, p), 64, 5.0, 40.0 * size, 1e-6, 0))
                rows.append(("all", r, "Allreduce", p, 64, 2.0, 16.0, 1e-6, 0))
            for r in leaders:
                rows.append(("between", r, "Allreduce", len(leaders), 64, 5.0, 80.0 * size, 1e-6, 0))
                if r:
                    rows.append(("tree", r, "Send", len(leaders), 64, 5.0, 200.0, 1e-6, 1))
            listed = pd.DataFrame(rows, columns=COLUMNS)
            counted = pd.DataFrame({"kernel": "all", "rank": range(p), "visits": 1.0})
            made.add(Run({"ranks": p, "size": size}, 0, "pmpi"), counted, tables={"messages": listed})
    return made


@pytest.mark.parametrize("group", [2, 4])
def test_leaders_of_groups(tmp_path: Path, group: int) -> None:
    made = hierarchy(tmp_path, group)
    groups = read_called(made).groups
    assert groups["between"] == groups["between: Allreduce"] == groups["tree"] == groups["within"] == group
    assert "all" not in groups
    sent = fit(made).equation.communication
    assert sent is not None
    points = np.array([[12.0, 24.0], [27.0, 24.0], [64.0, 48.0]])
    said, rows = sent.functions.predict(points), sent.functions.rows
    number = -(-points[:, 0] // group)
    of = said.value[rows["between: Allreduce", "messages"]]
    assert of == pytest.approx(5 * number / points[:, 0])
    assert said.value[rows["between: Allreduce", "bytes_sent"]] == pytest.approx(
        80 * points[:, 1] * number / points[:, 0]
    )
    tree, true = rows["tree: Send", "messages"], 5 * (number - 1) / points[:, 0]
    assert (said.lower[tree] <= true * (1 + 1e-9)).all()
    assert (said.upper[tree] >= true * (1 - 1e-9)).all()
    assert said.value[rows["all: Allreduce", "messages"]] == pytest.approx(2)


def test_names_of_terms_say_their_group() -> None:
    assert {in_groups(name) for name in RANK_TERMS} == {0, *GROUPS}
    assert in_groups("ceil(log2(ranks))") == 0


@pytest.mark.parametrize("node", [4, 8, 16])
@pytest.mark.parametrize("part", ["leaders", "others", "all but the first leader"])
def test_first_ranks_of_nodes_need_no_communicator(node: int, part: str) -> None:
    """Mean over ranks of what the first of each node sends, of what the others send it, of what leaders send one."""

    def sent(ranks: int) -> float:
        leaders = len(range(0, ranks, node))
        number = {"leaders": leaders, "others": ranks - leaders}.get(part, leaders - 1)
        return 1000 * number / ranks

    measured = (2, 4, 8, 16, 32)
    points = np.array([measured], dtype=float).T
    values = np.array([[[sent(p)] for p in measured]])
    law = fit_rank_laws(Series(("ranks",), points, values, ("main",), ("messages",)), {("main", "messages")})
    assert law
    asked = (48, 64, 512)
    said = law.predict(np.array([asked], dtype=float).T)
    true = np.array([sent(p) for p in asked])
    # What one sum may meet by chance is as wide as other functions say in addition.
    assert law.chance[0] or (said.lower[0] <= true * (1 + 1e-9)).all()
    assert law.chance[0] or (said.upper[0] >= true * (1 - 1e-9)).all()
    if node == 8:
        assert said.value[0] == pytest.approx(true)


def test_groups_as_large_as_the_largest_run_are_no_rivals() -> None:
    """Up to 32 ranks a group of 32 has one first rank, and so has the program."""
    points = np.array([[2.0, 4.0, 8.0, 16.0, 32.0]]).T
    series = Series(("ranks",), points, 1000 / points[None], ("main",), ("messages",))
    law = fit_rank_laws(series, {("main", "messages")})
    assert law
    said = law.predict(np.array([[64.0], [512.0]]))
    assert said.lower[0] == pytest.approx([1000 / 64, 1000 / 512])
    assert said.upper[0] == pytest.approx([1000 / 64, 1000 / 512])
