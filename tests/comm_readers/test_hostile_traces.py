"""Files of communication that were cut off, changed or made to harm: refused in one line, or read; nothing else."""

from __future__ import annotations

import itertools
import random
import re
import sys
from pathlib import Path

import pytest

from ranksight.core.errors import InputError
from ranksight.core.reading import READERS
from ranksight.core.testing import check_reader

from .test_traces import ALLPROF, SMPI

DATA = Path(__file__).parent / "data"
FILES = {
    "mpip": ("report.mpiP", (DATA / "ring.mpiP").read_bytes()),
    "ipm": ("job.xml", (DATA / "job.ipm.xml").read_bytes()),
    "smpi": ("trace.txt", SMPI.encode()),
    "liballprof": ("pmpi-trace-rank-0.txt", ALLPROF[0].replace("91,0,2", "91,0,1").encode()),
}
NUMBERS = (b"99999999999999999999", b"-1", b"1e400", b"nan", b"2147483648", b"")
WHOLE = re.compile(rb"\d+")


def changed(content: bytes, generator: random.Random) -> bytes:
    """One of the ways in which a file goes wrong."""
    way = generator.randrange(4)
    if way == 0:
        return content[: generator.randrange(len(content))]
    if way == 1:
        held = bytearray(content)
        for _ in range(8):
            held[generator.randrange(len(held))] = generator.randrange(256)
        return bytes(held)
    if way == 2:
        found = generator.choice(list(WHOLE.finditer(content)))
        return content[: found.start()] + generator.choice(NUMBERS) + content[found.end() :]
    lines = content.splitlines(keepends=True)
    del lines[generator.randrange(len(lines))]
    return b"".join(lines)


@pytest.mark.parametrize("name", FILES)
def test_the_contract_is_kept(name: str, tmp_path: Path) -> None:
    file, content = FILES[name]
    (tmp_path / file).write_bytes(content)
    check_reader(READERS[name], tmp_path / file)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(30))
def test_a_changed_file_is_read_or_refused_in_one_line(name: str, seed: int, tmp_path: Path) -> None:
    file, content = FILES[name]
    (tmp_path / file).write_bytes(changed(content, random.Random(seed)))
    try:
        (reading,) = READERS[name].read(tmp_path / file)
    except InputError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 1000
        assert str(tmp_path) in error.what
        return
    assert reading.messages is not None
    assert (reading.messages[["rank", "count", "bytes"]] >= 0).all().all()


def test_entities_that_grow_are_refused(tmp_path: Path) -> None:
    names = "abcdefghij"
    grown = "".join(f'<!ENTITY {b} "{10 * f"&{a};"}">' for a, b in itertools.pairwise(names))
    task = '<task ipm_version="2" mpi_rank="0" mpi_size="1"><cmdline>&j;</cmdline></task>'
    bomb = (
        f'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "0123456789">{grown}]><ipm_job_profile>{task}</ipm_job_profile>'
    )
    (tmp_path / "job.xml").write_text(bomb)
    with pytest.raises(InputError, match="declares a document type or an entity"):
        list(READERS["ipm"].read(tmp_path / "job.xml"))


def test_the_package_of_otf2_prints_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("otf2")
    from ranksight.comm.readers._otf2_events import silent

    with silent():
        sys.stderr.write("Traceback (most recent call last):")  # as the package does where a callback fails
    assert capsys.readouterr().err == ""
