"""Files and folders are complete or absent, whenever a process is killed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ranksight.cli.main import main
from ranksight.core import files
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment, read
from ranksight.core.files import Staging, check_output, new_folder, recover, write_json, write_output
from ranksight.core.run import Run


def killed(work: Callable[[], object]) -> None:
    """Do `work`, which ends its process with :func:`os._exit`, in a process of its own."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def kill_at(number: int, function: Callable[..., object]) -> Callable[..., object]:
    """The function; its call of that number kills the process before it does anything."""
    calls = iter(range(1, number + 1))

    def replaced(*arguments: object) -> object:
        if next(calls) == number:
            os._exit(9)
        return function(*arguments)

    return replaced


@pytest.fixture(params=["exchange", "two renames"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "two renames":
        monkeypatch.setattr(files, "_exchange", lambda one, other: False)
    return str(request.param)


def table(tmp_path: Path, value: int) -> list[str]:
    file = tmp_path / "table.csv"
    file.write_text(f"p,t\n1,{value}\n")
    named = ["--parameter", "ranks=p", "--metric", "time=t"]
    return ["import", "csv", str(file), *named, "-o", str(tmp_path / "made"), "--force", "--quiet"]


def test_an_import_that_is_killed_loses_no_experiment(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(table(tmp_path, 1)) == 0
    line = table(tmp_path, 2)
    # The first rename puts the run into the new experiment.
    for where, name, number in (
        ((os, "rename", 2), (os, "rename", 3)) if way != "exchange" else ((files, "_exchange", 1),)
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, kill_at(number, getattr(where, name)))
            killed(lambda: main(line))
        assert set(read(tmp_path / "made").counters()["time"]) == {1.0}, (name, number)
    assert main(line) == 0
    assert set(read(tmp_path / "made").counters()["time"]) == {2.0}
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["made", "table.csv"]


def test_what_was_replaced_is_swept_when_the_import_was_killed_after(tmp_path: Path, way: str) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "old").touch()

    def work() -> None:
        staging = Staging(tmp_path / "made")
        (staging.path / "new").mkdir()
        staging.put("new")
        os._exit(9)

    killed(work)
    assert not (tmp_path / "made" / "old").exists()
    assert len(list(tmp_path.iterdir())) == 2
    recover(tmp_path / "made")
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]
    assert not list((tmp_path / "made").iterdir())


def test_folders_that_are_held_or_another_s_are_left(tmp_path: Path) -> None:
    mine = tmp_path / ".made-0badcafe"
    mine.mkdir()
    (mine / "thesis.tex").touch()
    (tmp_path / ".made-of-0badcafe").mkdir()
    (tmp_path / ".made-12345678").mkdir()  # made just now, not locked yet
    with Staging(tmp_path / "made") as staging:
        recover(tmp_path / "made")
        assert staging.path.is_dir()
        assert (mine / "thesis.tex").exists()
    assert not staging.path.exists()
    os.utime(tmp_path / ".made-12345678", (0, 0))
    os.utime(mine, (0, 0))
    recover(tmp_path / "made")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".made-0badcafe", ".made-of-0badcafe"]


def test_the_head_of_an_experiment_is_on_disk_before_it_is_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    fsync, replace = os.fsync, os.replace

    def synced(handle: int) -> None:
        done.append(("sync", os.readlink(f"/proc/self/fd/{handle}")))
        fsync(handle)

    def moved(one: Path, other: Path) -> None:
        done.append(("move", str(other)))
        replace(one, other)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", moved)
    write_json(tmp_path / "head.json", {"a": 1})
    staging, place, folder = (what for _, what in done)
    assert [kind for kind, _ in done] == ["sync", "move", "sync"]
    assert Path(staging).parent == tmp_path
    assert (place, folder) == (str(tmp_path / "head.json"), str(tmp_path))


@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_only_files_are_replaced(tmp_path: Path, what: str) -> None:
    place = tmp_path / "m.json"
    (tmp_path / "mine").write_text("mine")
    if what == "pipe":
        os.mkfifo(place)
    elif what == "folder":
        place.mkdir()
    else:
        place.symlink_to(tmp_path / "mine")
    before = os.lstat(place)
    for call in (lambda: check_output(place, force=True), lambda: write_output(place, "new")):
        with pytest.raises(InputError, match=f"is a .*{what}"):
            call()
    assert os.lstat(place)[:4] == before[:4]
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_link_in_a_strangers_folder_leads_no_writing_out_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    names = iter([b"\0\0\0\0", b"\0\0\0\1"])
    monkeypatch.setattr(os, "urandom", lambda size: next(names))
    (tmp_path / ".head.json.00000000").symlink_to(mine)
    with pytest.raises(FileExistsError):  # the name is random, and one that exists is not written through
        write_json(tmp_path / "head.json", {"a": 1})
    (tmp_path / "head.json").symlink_to(mine)
    write_json(tmp_path / "head.json", {"a": 1})
    assert mine.read_text() == "mine"
    assert not (tmp_path / "head.json").is_symlink()


@pytest.fixture(params=[0o077, 0o022, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_rights_are_what_the_umask_leaves(tmp_path: Path, umask: int) -> None:
    write_output(tmp_path / "report.html", "text")
    write_json(tmp_path / "head.json", {})
    experiment = Experiment.create(tmp_path / "e", "x", ["ranks"])
    run = experiment.add(Run({"ranks": 1.0}))
    folders = [new_folder(tmp_path, ".new-"), experiment.path / "runs" / run.id]
    files = [tmp_path / "report.html", tmp_path / "head.json", folders[1] / "run.json"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o666 & ~umask}
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o777 & ~umask}


def test_what_a_killed_command_wrote_is_swept_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.json"
    write_output(path, "old")
    monkeypatch.setattr(os, "replace", kill_at(1, os.replace))
    killed(lambda: write_output(path, "new"))
    monkeypatch.undo()
    assert len(list(tmp_path.iterdir())) == 2
    others = [tmp_path / name for name in (".m.json.bak", ".m.json.0123456", ".n.json.01234567")]
    for other in others:
        other.touch()
    (tmp_path / ".m.json.01234567").symlink_to(others[0])
    with files._unfinished(path) as held:  # of one that is writing
        write_output(path, "newer")
        assert {*others, path, Path(held.name), tmp_path / ".m.json.01234567"} == set(tmp_path.iterdir())
    assert path.read_text() == "newer"


def test_a_file_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = files.fcntl.flock
    swept: list[Path] = []

    def late(file: int, how: int) -> None:
        if not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        flock(file, how)

    monkeypatch.setattr(files.fcntl, "flock", late)
    write_output(tmp_path / "m.json", "text")
    assert len(swept) == 1
    assert [(entry.name, entry.read_text()) for entry in tmp_path.iterdir()] == [("m.json", "text")]
