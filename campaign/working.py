"""Folders that runs work in: a copy of the user's case for each execution, prepared once per configuration.

A program that writes where it runs, or starts from what it wrote, would not measure the same twice in one folder. A
case is copied, what prepares it for a configuration (a decomposition, an input file) is run in that copy outside the
measurement, and each execution gets a copy of what came of it.
"""

from __future__ import annotations

import os
import shlex
import shutil
from pathlib import Path

from ranksight.campaign import supervising
from ranksight.campaign.launching import Launch
from ranksight.core.errors import InputError, ToolError
from ranksight.core.log import log

OUTPUT = "output-prepare.txt"
"""What the command that prepares a case printed, in the folder of an execution."""


class Workplace:
    """The work folders of one campaign; a context manager that removes the prepared case at its end.

    Raises InputError when `case` is not a folder, or `root` is inside it.

    Parameters
    ----------
    case : Path or None
        What is copied; None for empty folders.
    root : Path
        Where prepared cases are kept while their configuration is measured; on a file system that all ranks see.
    record : str
        Name of the file that names the processes while they run.
    timeout : float or None
        Seconds that a preparation may take.
    """

    def __init__(self, case: Path | None, root: Path, record: str, timeout: float | None) -> None:
        self.case, self.root, self.record, self.timeout = case, root, record, timeout
        self._prepared: tuple[tuple[str, ...], Path | None, str] = ((), None, "")
        if case is not None:
            if not case.is_dir():
                raise InputError(f"{case} is not a folder", "name the folder of a case with --workdir")
            if root.resolve().is_relative_to(case.resolve()):
                raise InputError(
                    f"{root} is inside {case}, which is copied for each run", "name a folder outside with -o"
                )

    def __enter__(self) -> Workplace:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()

    def place(self, launch: Launch, folder: Path, name: str) -> Path:
        """Make the work folder `name` in `folder` for one execution.

        Raises ToolError when the preparation failed; what it printed is in `folder` then; InputError when something
        cannot be copied.
        """
        source = self.case
        if launch.prepare:
            if self._prepared[0] != launch.prepare:
                self._clear()
                self._prepared = (launch.prepare, *self._prepare(launch.prepare))
            _, source, failed = self._prepared
            if failed:
                shutil.copy(self._scratch / OUTPUT, folder / OUTPUT)
                raise ToolError(f"'{shlex.join(launch.prepare)}' {failed}", "see to the command of --prepare")
        return _copied(source, folder / name)

    @property
    def _scratch(self) -> Path:
        return self.root / ".pass-prepared"

    def _prepare(self, command: tuple[str, ...]) -> tuple[Path, str]:
        """The folder of the prepared case, and how the preparation failed, empty where it did not."""
        self._scratch.mkdir()
        place = _copied(self.case, self._scratch / "case")
        output, record = self._scratch / OUTPUT, self._scratch / self.record
        log("prepare: %s", shlex.join(command))
        try:
            status, _ = supervising.run(command, output, os.environ, record, self.timeout, place)
        except TimeoutError:
            return place, f"ran longer than {self.timeout:g} s and was ended"
        except OSError as error:
            output.touch()
            return place, f"cannot be started: {error.strerror or error}"
        return place, f"ended with status {status}" if status else ""

    def _clear(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)
        self._prepared = ((), None, "")


def _copied(source: Path | None, place: Path) -> Path:
    """Copy a case; symbolic links stay links and lead where they led."""
    if source is None:
        place.mkdir()
        return place
    try:
        shutil.copytree(source, place, symlinks=True)
        for folder, folders, files in os.walk(place):
            for link in (Path(folder) / name for name in (*folders, *files)):
                if link.is_symlink():
                    was = source / link.relative_to(place)
                    inside = os.path.abspath(was.parent / os.readlink(was))
                    if not os.path.isabs(os.readlink(was)) and not Path(inside).is_relative_to(os.path.abspath(source)):
                        link.unlink()
                        link.symlink_to(inside)
    except (OSError, shutil.Error) as error:
        what = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror or error
        raise InputError(
            f"{source} cannot be copied to {place}: {what}", "free space, or name another folder"
        ) from error
    return place
