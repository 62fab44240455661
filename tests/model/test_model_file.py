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
from ranksight.model import modelfile


@pytest.mark.parametrize("version", [2, modelfile.SCHEMA_VERSION - 1])
def test_a_model_of_an_older_version_is_refused_by_name(version: int, tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"schema_version": version, "kind": modelfile.KIND}), encoding="utf-8")
    with pytest.raises(InputError, match="older version of ranksight") as caught:
        modelfile.read(path)
    assert "fit it again" in str(caught.value.remedy)


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
