"""Commands that end when the one who started them does, however that happens.

A command runs under a small supervisor in a session of its own. The supervisor holds one end of a socket pair: when
the other end closes, because the caller closed it or is gone (SIGKILL included), it ends all that the command started,
be it in other process groups, as ``mpirun`` puts its ranks, or in other sessions. What no supervisor could end, as it
was killed too, is found by a record of the session, which the next campaign reads.

This file is the supervisor, too: it is run by its path in a bare interpreter and needs the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time

if __name__ != "__main__":  # the supervisor itself starts in 15 ms without these
    import socket
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ranksight.core.errors import InputError
    from ranksight.core.files import read_bytes
    from ranksight.core.run import JOBS

PATIENCE = 5.0
"""Seconds that processes have to end after SIGTERM, and again after SIGKILL."""
_PAUSE = 0.02
_SUBREAPER = 36
"""``PR_SET_CHILD_SUBREAPER`` (linux/prctl.h): processes whose parent ended become children of the supervisor."""
_CLEAN = [signal.SIGPIPE, signal.SIGXFSZ]
"""Signals that Python ignores and a program expects at their default."""


READS = "<"
"""Word before the last one of a command that reads a file as its standard input."""


def redirected(command: Sequence[str]) -> tuple[list[str], str]:
    """A command without the file that it reads as its standard input, and this file; empty where it reads none."""
    if len(command) > 2 and command[-2] == READS:
        return list(command[:-2]), command[-1]
    return list(command), ""


# ---- the caller's side ----------------------------------------------------------------------------------------------


def run(
    command: Sequence[str],
    output: Path,
    environment: Mapping[str, str],
    record: Path,
    timeout: float | None = None,
    folder: Path | None = None,
    enough: Sequence[Path] = (),
) -> tuple[int, float]:
    """Run a command to its end, standard output and error into a file; ``< FILE`` at its end is its standard input.

    All that it started has ended when this raises, or when the command failed. Raises OSError when the command cannot
    be started; TimeoutError when it took longer than `timeout`.

    Parameters
    ----------
    output : Path
        File that takes what the command prints.
    environment : mapping of str to str
        The whole environment.
    record : Path
        File that names the session while the command runs; see :func:`end_left`.
    timeout : float, optional
        Seconds after which the command is ended.
    folder : Path, optional
        Where it runs; here by default.
    enough : sequence of Path, optional
        Files that end the command, with status 0, once all of them exist.

    Returns
    -------
    tuple of int and float
        Exit status (below 0: the signal that killed it) and wall time in seconds.
    """
    job = next((name for name in ("SLURM_JOB_ID", *JOBS) if environment.get(name)), "-")
    ours, theirs = socket.socketpair()
    with ours, output.open("wb") as sink:
        with theirs:
            words = (sys.executable, "-I", "-S", __file__, os.path.abspath(record), job, str(len(enough)))
            line = (*words, *map(os.path.abspath, enough), *command)
            process = subprocess.Popen(
                line,
                stdin=theirs.fileno(),
                stdout=sink,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                start_new_session=True,
            )
        try:
            ours.settimeout(timeout)
            said = ours.recv(4096).decode("utf-8", "replace")
        finally:
            ours.close()  # a supervisor that has not answered yet ends the command now
            process.wait()
    if not said:  # the supervisor was killed; what is left of its session keeps the number from being used again
        for number in _members(process.pid):
            with contextlib.suppress(OSError):
                os.kill(number, signal.SIGKILL)
        return process.returncode or -signal.SIGKILL, 0.0
    kind, first, second = said.split(" ", 2)
    if kind == "error":
        raise OSError(int(first), second)
    return int(first), float(second)


def end_left(record: Path) -> None:
    """End what an earlier campaign left running, as its record names it.

    Nothing is done where there is no record, where the machine was started anew since, or where the number of the
    process is another's by now. Raises InputError when processes may run that cannot be ended from here.
    """
    try:
        host, boot, session, start, job = read_bytes(record, 4096).decode("utf-8").split()
        leader, began = int(session), int(start)
    except (InputError, ValueError):  # ended before it started anything
        return
    if host != os.uname().nodename:
        if job == "-":  # a batch system ends what its jobs leave
            raise InputError(
                f"a run of an earlier campaign may still be running at {host}, process {leader}",
                f"see to it there, then remove {record.parent}",
            )
        return
    if boot != _boot():
        return
    now = _processes().get(leader)
    if now is not None:
        if now[2] != began:
            return
        os.kill(leader, signal.SIGTERM)
        limit = time.monotonic() + 3 * PATIENCE
        while leader in _processes() and time.monotonic() < limit:
            time.sleep(_PAUSE)
    # Without its leader a session cannot be known for sure: its number may have been given to another.
    if left := sorted(_members(leader)):
        numbers = " ".join(map(str, left))
        raise InputError(
            f"an earlier campaign left processes running that would share the cores: {numbers}",
            f"end them (kill {numbers}) or, if they are not the program's, remove {record.parent}",
        )


# ---- both sides -----------------------------------------------------------------------------------------------------


def _boot() -> str:
    """What names this start of the machine; ``-`` where nothing does."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return "-"


def _processes() -> dict[int, tuple[int, int, int]]:
    """Parent, session and start time (clock ticks after the machine's) of all processes that run, by number.

    Empty where there is no ``/proc`` as Linux has it.
    """
    found = {}
    try:
        names = os.listdir("/proc")
    except OSError:
        return {}
    for name in names:
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    found[int(name)] = int(fields[1]), int(fields[3]), int(fields[19])
            except (OSError, IndexError, ValueError):
                continue  # it ended meanwhile, or this is no Linux
    return found


def _members(leader: int) -> set[int]:
    """The processes of a session and all that they started, without its leader."""
    running = _processes()
    found = {number for number, (parent, session, _) in running.items() if leader in (parent, session)}
    more = set(found)
    while more:
        more = {number for number, (parent, _, _) in running.items() if parent in more} - found
        found |= more
    return found - {leader}


# ---- the supervisor's side ------------------------------------------------------------------------------------------


def _adopt_orphans() -> None:
    """Become the parent of processes whose own has ended, so that what left the session is found, too."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        pass  # no Linux: the session is what can be found


def _write_record(file: str, job: str) -> None:
    own = _processes().get(os.getpid(), (0, 0, 0))
    with open(file, "w", encoding="utf-8") as record:
        record.write(f"{os.uname().nodename} {_boot()} {os.getpid()} {own[2]} {job}\n")


def _reap(child: int) -> int | None:
    """Take the exit statuses of processes that have ended; that of `child` where it is among them."""
    found = None
    while True:
        try:
            number, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if number == 0:
            return found
        if number == child:
            found = os.waitstatus_to_exitcode(status)


def _end(child: int) -> None:
    """End all that the command started: politely first, so that a launcher can take its ranks along."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(child, number)
        limit = time.monotonic() + PATIENCE
        while time.monotonic() < limit:
            left = _members(os.getpid())
            _reap(0)  # what has ended, so that its processor time is known
            if not left:
                return
            for one in left if number == signal.SIGKILL else ():
                with contextlib.suppress(OSError):
                    os.kill(one, number)
            time.sleep(_PAUSE)


def _supervise(record: str, job: str, enough: list[str], command: list[str]) -> str:
    """Run the command until it ends, files of `enough` exist, or the caller is gone; what the caller is answered."""
    awake, wake = os.pipe()
    for end in (awake, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, lambda *_: None)
    _adopt_orphans()
    try:
        _write_record(record, job)
        command, source = redirected(command)
        stdin = (os.POSIX_SPAWN_OPEN, 0, source or os.devnull, os.O_RDONLY, 0)
        begin = time.monotonic()
        child = os.posix_spawnp(command[0], command, os.environ, file_actions=[stdin], setpgroup=0, setsigdef=_CLEAN)
    except OSError as error:
        return f"error {error.errno} {error.strerror}"
    while (status := _reap(child)) is None:
        ready, _, _ = select.select([0, awake], [], [], _PAUSE if enough else None)
        if enough and all(map(os.path.exists, enough)):
            seconds = time.monotonic() - begin
            _end(child)
            return f"ended 0 {seconds!r}"
        signals = os.read(awake, 512) if awake in ready else b""
        if 0 in ready or signals.strip(bytes([signal.SIGCHLD])):
            break
    seconds = time.monotonic() - begin
    if status != 0:
        _end(child)
    return f"ended {-signal.SIGTERM if status is None else status} {seconds!r}"


if __name__ == "__main__":
    first = 4 + int(sys.argv[3])
    answer = _supervise(sys.argv[1], sys.argv[2], sys.argv[4:first], sys.argv[first:])
    with contextlib.suppress(OSError):  # the caller may be gone
        os.write(0, answer.encode())
