"""The file of a model: what is read again is what was written, whichever version wrote it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranksight.core import limits
from ranksight.core.errors import InputError
from ranksight.model import earlier, modelfile
from ranksight.model.fitted_model import Model

DATA = Path(__file__).parent / "data"
EARLIER = sorted(DATA.glob("version_*.json"))
"""Written by earlier versions. 2, one JSON object: six metrics of two kernels over ranks. 3: times from cycles, shared
memory, uneven ranks. 4: counters of two kernels at two sizes; messages to neighbours."""


@pytest.mark.parametrize("path", EARLIER, ids=lambda path: path.name)
def test_a_model_of_an_older_version_answers_and_is_written_anew(path: Path, tmp_path: Path) -> None:
    old = Model.load(path)
    old.save(tmp_path / "new.model")
    assert modelfile.read(path)["schema_version"] < modelfile.read(tmp_path / "new.model")["schema_version"]
    new = Model.load(tmp_path / "new.model")
    points = np.array([[4.0, 32.0], [256.0, 32.0]])[:, : len(old.parameters)]
    one, two = old.forecast(points), new.forecast(points)
    assert (one.status == 0).any()
    np.testing.assert_array_equal(one.status, two.status)
    for name in ("value", "lower", "upper", "form"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-12)
    np.testing.assert_allclose(old.breakdown(points).total.value, new.breakdown(points).total.value, rtol=1e-12)


@pytest.mark.parametrize("place", list(earlier.RENAMED), ids=".".join)
def test_entries_of_older_versions_are_found_under_their_new_names(place: tuple[str, ...]) -> None:
    def at(place: tuple[str, ...]) -> dict[str, Any]:
        content: Any = 1.0
        for name in reversed(place):
            content = {"a" if name == "*" else name: content}
        return {"extras": content}

    def now(place: tuple[str, ...]) -> tuple[str, ...]:
        return (place[0], "laws", *place[1:]) if place[0] == "application" else place

    new = (*place[:-1], earlier.RENAMED[place])
    assert earlier.upgraded(at(place), 3)["extras"] == at(now(new))["extras"]
    assert earlier.upgraded(at(place), 4)["extras"] == at(now(place))["extras"]
    assert earlier.upgraded(at(new), 5)["extras"] == at(now(new))["extras"]


def test_parts_of_older_versions_are_used() -> None:
    third = Model.load(DATA / "version_3.model.json")
    assert third.predict(ranks=36).notes
    assert third.equation.resources is not None
    assert third.equation.sharing is not None
    assert third.diagnose(ranks=36).advice()["text"].str.contains("rank 0 does").any()
    fourth = Model.load(DATA / "version_4.model.json")
    assert fourth.equation.counted is not None
    times = fourth.predict(ranks=96, size=64, metrics=["time"]).answers
    assert all("counted equation" in answer.evidence for answer in times if answer.kernel)
    messages = Model.load(DATA / "version_4_messages.model.json").predict(ranks=1000, size=24)
    assert any("trace 64 ranks" in note for note in messages.notes)


LISTS: list[Any] = [
    [0.5, None] * 40,
    [[1, 2, 300]] * 40,
    [True, False] * 40,
    [-1, 2**40] * 40,
    [1, 0.5] * 40,
    [[1.0], [2.0, 3.0]] * 40,
    ["a"] * 40,
    [],
    [2**70] * 40,
]


@pytest.mark.parametrize("content", LISTS, ids=range(len(LISTS)))
def test_lists_come_back_as_they_were(tmp_path: Path, content: Any) -> None:
    modelfile.write(tmp_path / "m", {"extras": {"here": {"deep": content}}})
    found = modelfile.read(tmp_path / "m")["extras"]["here"]["deep"]
    assert found == content
    assert json.dumps(found) == json.dumps(content)


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.uint8, bool])
def test_arrays_come_back_mapped_into_memory(tmp_path: Path, kind: type) -> None:
    given = np.arange(60).reshape(3, 4, 5).astype(kind)
    modelfile.write(tmp_path / "m", {"a": given, "b": given[:0]})
    found = modelfile.read(tmp_path / "m")
    np.testing.assert_array_equal(found["a"], given)
    assert found["b"].shape == (0, 4, 5)
    assert not found["a"].flags.owndata
    with zipfile.ZipFile(tmp_path / "m") as archive:
        np.testing.assert_array_equal(np.load(archive.open("0.npy")), given)


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MODEL_NUMBERS", 99)
    modelfile.write(tmp_path / "small", {"a": np.zeros(99)})
    with pytest.raises(InputError, match="more than can be read again"):
        modelfile.write(tmp_path / "large", {"a": np.zeros(100)})
    assert [file.name for file in tmp_path.iterdir()] == ["small"]


@pytest.mark.parametrize("cut", [0.1, 0.5, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_damaged(tmp_path: Path, cut: float) -> None:
    file = tmp_path / "m"
    modelfile.write(file, {"a": np.zeros(1000)})
    file.write_bytes(file.read_bytes()[: int(cut * file.stat().st_size)])
    with pytest.raises(InputError, match="is damaged"):
        modelfile.read(file)


def test_a_column_whose_header_cannot_be_parsed_is_damaged(tmp_path: Path) -> None:
    head = {"schema_version": modelfile.SCHEMA_VERSION, "kind": modelfile.KIND, "a": {"$array": "0"}}
    with zipfile.ZipFile(tmp_path / "m", "w") as archive:
        archive.writestr(modelfile.HEAD, json.dumps(head))
        archive.writestr("0.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((\n  ")
    with pytest.raises(InputError, match="is damaged"):
        modelfile.read(tmp_path / "m")


def test_a_column_that_is_no_array_of_numbers_is_refused(tmp_path: Path) -> None:
    head = {"schema_version": modelfile.SCHEMA_VERSION, "kind": modelfile.KIND, "a": {"$array": "0"}}
    for content, how in ((np.array(["text"]), "text"), (np.array([1j]), "complex"), (None, "nothing")):
        file = tmp_path / how
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(modelfile.HEAD, json.dumps(head))
            if content is not None:
                with archive.open("0.npy", "w") as part:
                    np.save(part, content)
        with pytest.raises(InputError, match=how):
            modelfile.read(file)
