"""The diagnosis of models of messages alone."""

from __future__ import annotations

import io
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranksight.analysis.diagnosis.sent import sent_only, sent_table
from ranksight.cli.main import main
from ranksight.core.experiment import Experiment, Run
from ranksight.model.fit import fit
from ranksight.model.fitted_model import Model

COLUMNS = ["kernel", "rank", "operation", "comm_size", "size_class", "count", "bytes", "seconds", "peers"]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sent")
    made = Experiment.create(folder / "exp", "app", ["ranks"])
    for p in (1, 2, 4, 8, 16):
        rows = [("table", r, "Allgather", p, 64, 1.0, 8.0 * p, 1e-6, 0) for r in range(p)]
        rows += [("norm", r, "Allreduce", p, 64, 2.0, 16.0, 1e-6, 0) for r in range(p)]
        listed = pd.DataFrame(rows, columns=COLUMNS)
        counted = listed.groupby(["kernel", "rank"])[["count", "bytes"]].sum().reset_index()
        counted = counted.rename(columns={"count": "messages", "bytes": "bytes_sent"})
        made.add(Run({"ranks": p}, 0, "pmpi"), counted, tables={"messages": listed})
    fit(made).save(folder / "m.json")
    return folder / "m.json"


def test_what_grows_faster_than_a_tree_is_named(traced: Path) -> None:
    model = Model.load(traced)
    assert sent_only(model)
    table = sent_table(model, np.array([[1024.0]])).set_index(["kernel", "metric"])
    assert table["verdict"].to_dict() == {
        ("table", "bytes_sent"): "grows",
        ("norm", "bytes_sent"): "scales",
        ("table", "messages"): "scales",
        ("norm", "messages"): "scales",
    }
    assert table.loc[("table", "bytes_sent"), "growth"] == pytest.approx(64)
    assert table.loc[("table", "bytes_sent"), "share"] == pytest.approx(8 * 1024 / (8 * 1024 + 16))


def test_the_verb_shows_it(traced: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(traced), "--ranks", "1024"]) == 0
    shown = capsys.readouterr().out
    assert "grows faster than log(ranks): table Allgather" in shown
    assert "No time was measured" in shown
    assert main(["diagnose", str(traced), "--ranks", "64", "--format", "json"]) == 0
    assert {row["verdict"] for row in json.loads(capsys.readouterr().out)["sent"]} == {"grows", "scales"}
    assert main(["diagnose", str(traced), "--kernel", "norm", "--format", "csv"]) == 0
    assert "table" not in capsys.readouterr().out
    assert main(["diagnose", str(traced), "--kernel", "nothing"]) == 1


def test_counts_of_kernels_are_shown_as_those_of_operations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table of messages by kernel: no operation is known, what is sent is. The next line of a prediction runs."""
    rows = [f"{p},{kernel},{n}" for p in (2, 4, 8, 16, 32) for kernel, n in (("alltoall", 10 * (p - 1)), ("halo", 6))]
    (tmp_path / "m.csv").write_text("\n".join(["ranks,kernel,messages", *rows]))
    named = ["--parameter", "ranks", "--kernel", "kernel", "--metric", "messages", "--values", "mean", "--quiet"]
    assert main(["import", "csv", str(tmp_path / "m.csv"), "-o", str(tmp_path / "m.exp"), *named]) == 0
    assert main(["fit", str(tmp_path / "m.exp"), "-o", str(tmp_path / "m.json"), "--quiet"]) == 0
    capsys.readouterr()
    assert main(["diagnose", str(tmp_path / "m.json"), "--ranks", "32,64", "--format", "csv"]) == 0
    table = pd.read_csv(io.StringIO(capsys.readouterr().out)).set_index(["kernel", "ranks"])
    assert table.loc[("alltoall", 32), "value"] == pytest.approx(310)
    assert table.loc[("halo", 64), "verdict"] == "scales"
    assert table.loc[("halo", 32), "share"] == pytest.approx(6 / 316)
    main(["predict", str(tmp_path / "m.json"), "--ranks", "65536"])
    program, *words = shlex.split(" ".join(capsys.readouterr().out.split()).rsplit("next: ", 1)[1])
    assert (program, words[0]) == ("ranksight", "diagnose")
    assert main(words) in (0, 4)


def test_whole_steps_of_a_tree_scale(tmp_path: Path) -> None:
    rows = [f"{ranks},barrier,{10 * (ranks - 1).bit_length()}" for ranks in (1, 2, 3, 4, 6, 8)]
    (tmp_path / "sent.csv").write_text("\n".join(["ranks,kernel,messages", *rows]) + "\n")
    source = ["--parameter", "ranks", "--kernel", "kernel", "--metric", "messages", "--values", "mean"]
    assert main(["import", "csv", str(tmp_path / "sent.csv"), *source, "-o", str(tmp_path / "exp")]) == 0
    table = sent_table(fit(Experiment.read(tmp_path / "exp")), np.array([[12.0], [64.0]]))
    assert table["verdict"].tolist() == ["scales", "scales"]
