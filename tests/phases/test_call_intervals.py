"""Counters between MPI calls: the parts of a dump file, and a real program under callgrind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ranksight.campaign.collecting import COLLECTORS
from ranksight.core.errors import InputError
from ranksight.counters.callgrind_parts import read_parts

PART = (
    "part: {n}\n\ndesc: Trigger: {trigger}\n\npositions: line\nevents: Ir Dr Dw\nsummary: {cost}\n\nfn=(1) main\n5 7\n"
)


def written(path: Path, *parts: tuple[str, str]) -> Path:
    lines = [PART.format(n=n, trigger=trigger, cost=cost) for n, (trigger, cost) in enumerate(parts, 1)]
    path.write_text("# callgrind format\nversion: 1\n" + "\n".join(lines))
    return path


def test_parts_are_calls(tmp_path: Path) -> None:
    file = written(
        tmp_path / "a",
        ("--dump-before=MPI_Init", "8 1 1"),
        ("--dump-before=MPI_Bcast", "101 11 7"),
        ("--dump-before=MPI_own_helper", "1000 100"),
        ("--dump-before=mpi_send_", "50 5 5"),
        ("--dump-before=MPI_Finalize", "30"),
        ("Program termination", "18446744073703537156 18446744073708219680 184467440"),
    )
    table = read_parts(file)
    # The function that triggers a dump adds one jump and one load; another function's dump is the next call's.
    assert table.to_dict("list") == {
        "operation": ["Bcast", "Send", "Finalize"], "Ir": [100, 1049, 30], "Dr": [10, 104, 0], "Dw": [7, 5, 0]
    }  # fmt: skip


@pytest.mark.parametrize("cost", ["x", "1 2 3 4", "-1e99", ""])
def test_damaged_parts_are_named(tmp_path: Path, cost: str) -> None:
    file = written(tmp_path / "a", ("--dump-before=MPI_Bcast", "1 2 3"), ("--dump-before=MPI_Send", cost))
    with pytest.raises(InputError, match=r"a:\d+"):
        read_parts(file)


def test_no_call_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no MPI call"):
        read_parts(written(tmp_path / "a", ("Program termination", "1 2 3")))
    with pytest.raises(InputError, match="cannot be read"):
        read_parts(tmp_path / "none")


@pytest.mark.mpi
@pytest.mark.valgrind
def test_a_program_is_counted_call_by_call(tmp_path: Path) -> None:
    for tool in ("mpicc", "mpirun", "valgrind"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} not found")
    from ranksight.campaign.launching import Template
    from ranksight.campaign.measuring import execute
    from ranksight.examples.build import build

    program = build("heat", tmp_path)
    command = (
        "mpirun",
        "--oversubscribe",
        "-n",
        "{ranks}",
        str(program),
        "--n",
        "6",
        "--iterations",
        "4",
        "--steps",
        "2",
    )
    launch = Template(command).fill({"ranks": 2})

    def measured(name: str):
        place = tmp_path / name
        place.mkdir()
        for number, step in enumerate(COLLECTORS[name].steps(launch, place)):
            execute(step, place / f"output-{number}.txt", 120)
        return COLLECTORS[name].collect(launch, place)

    table = measured("callgrind-intervals").tables["intervals"]
    assert not COLLECTORS["callgrind-intervals"].default
    mine = table[table["rank"] == 1]
    names = mine["operation"].astype(str).tolist()
    assert names[0] == "Barrier"
    assert names[-1] == "Finalize"
    assert names.count("Allreduce") == 2 * (2 + 2 * 4) + 3
    # Between the two inner products of an iteration lies the same work every time, to the instruction.
    pairs = [at for at in range(1, len(names)) if names[at - 1 : at + 1] == ["Allreduce", "Allreduce"]]
    repeated = [float(mine["instructions"].iloc[at]) for at in pairs[1:4]]
    assert len(set(repeated)) == 1
    assert (mine[["loads_l1", "loads_l2", "loads_l3", "loads_mem"]].sum(axis=1) == mine["loads"]).all()
    kernels = measured("callgrind").counters
    assert kernels is not None
    own = kernels[(kernels["rank"] == 1) & ~kernels["kernel"].str.contains("[", regex=False)]
    # All of the program's kernels are in it, and little else but what they call of libc and libm.
    assert own["instructions"].sum() <= mine["instructions"].sum() <= 1.5 * own["instructions"].sum()
