"""Generated inputs of whole commands, varied as those of real programs are: one function of this module a file.

Series come from :mod:`benchmarks.synthetic_functions`; kernels have names, call chains and shares as those of a program
of thousands of functions have them.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from benchmarks.synthetic_functions import tasks_of
from benchmarks.tasks import Array, stack

SEED = 5
DRAWN, NOISE = 500, 0.1
"""Distinct functions, and the noise on them; more series repeat them with other noise."""
METRICS = (
    "time", "cycles", "instructions", "loads", "stores", "loads_l1", "loads_l2", "loads_l3", "loads_mem",
    "branches", "branch_misses", "flops_dp", "bytes_mem_read", "bytes_mem_written", "stall_cycles",
)  # fmt: skip
"""Fifteen metrics of a campaign of counters."""
WORDS = ("compute", "exchange", "pack", "unpack", "neighbor", "build", "integrate", "force", "reduce", "copy", "sort")


def values_of(parameters: int, count: int, seed: int = 11) -> tuple[Array, Array, Array]:
    """Points (n, m), values (s, n, r) and targets (k, m) of `count` series."""
    tasks, _ = tasks_of(11, min(count, DRAWN), parameters, NOISE)
    values = stack(tasks)
    which = np.arange(count) % len(values)
    found = values[which]
    found[len(values) :] *= 1 + NOISE / 8 * np.random.default_rng(seed).uniform(-1, 1, size=found[len(values) :].shape)
    return tasks[0].points, found, tasks[0].targets


def extrap(file: Path, parameters: int, count: int) -> None:
    """Extra-P's text format: `count` kernels over so many parameters, five points an axis, five repetitions."""
    points, values, _ = values_of(parameters, count)
    with file.open("w") as out:
        out.write("".join(f"PARAMETER {name}\n" for name in "xyz"[:parameters]))
        out.write("POINTS " + " ".join("(" + " ".join(f"{x:g}" for x in point) + ")" for point in points) + "\n")
        out.write("METRIC time\n")
        for at, rows in enumerate(values):
            out.write(f"REGION k{at}\n")
            out.write("".join("DATA " + " ".join(f"{x:.9g}" for x in row) + "\n" for row in rows))


def csv(file: Path, rows: int) -> None:
    """A tidy table: kernels x 5 rank counts x 5 repetitions, one time a row."""
    generator = np.random.default_rng(SEED)
    kernels = rows // 25
    names = [f"{WORDS[k % len(WORDS)]}_{k}" for k in range(kernels)]
    scale = 10 ** generator.uniform(-4, 1, kernels)
    with file.open("w") as out:
        out.write("ranks,repetition,kernel,time\n")
        for ranks in (4, 8, 16, 32, 64):
            for repetition in range(5):
                time = scale * (0.1 + 4 / ranks) * (1 + 0.02 * generator.uniform(-1, 1, kernels))
                out.writelines(
                    f"{ranks},{repetition},{name},{x:.9g}\n" for name, x in zip(names, time.tolist(), strict=True)
                )


def counters(file: Path, kernels: int) -> None:
    """A tidy table of :data:`METRICS` of so many kernels, at six rank counts with three repetitions.

    Kernels work as the rank's share of a fixed problem, in part or not at all divided; their shares of the time are
    skewed, loads of the levels sum to the loads, and cycles follow from instructions and stalls.
    """
    generator = np.random.default_rng(SEED)
    share = (1 / np.arange(1, kernels + 1)) ** 0.9
    divided = generator.choice([1.0, 0.9, 0.5, 0.0], size=kernels, p=[0.6, 0.2, 0.1, 0.1])
    per_load, memory = generator.uniform(2, 6, kernels), 10 ** generator.uniform(-4, -1, kernels)
    pace = generator.uniform(0.3, 1.2, kernels)
    names = [f"{WORDS[k % len(WORDS)]}_{k}" for k in range(kernels)]
    with file.open("w") as out:
        out.write(",".join(("ranks", "repetition", "kernel", *METRICS)) + "\n")
        for ranks in (2, 4, 8, 16, 32, 64):
            instructions = 1e12 * share * ranks**-divided
            for repetition in range(3):
                scatter = 1 + 0.003 * generator.standard_normal((len(METRICS), kernels))
                loads = instructions / per_load
                l_mem = loads * memory * (1 + 2 / ranks)
                l3, l2 = l_mem * 2, loads * 0.03
                stalls = 80 * l_mem + 20 * l3
                cycles = instructions * pace + stalls
                columns = np.array(
                    [cycles / 2.5e9, cycles, instructions, loads, loads / 2, loads - l2 - l3 - l_mem, l2, l3, l_mem,
                     instructions / 8, instructions / 400, instructions / 5, 64 * l_mem, 32 * l_mem, stalls]
                ) * scatter  # fmt: skip
                for name, row in zip(names, columns.T.tolist(), strict=True):
                    out.write(f"{ranks},{repetition},{name}," + ",".join(f"{x:.9g}" for x in row) + "\n")


def perf_script(file: Path, samples: int) -> None:
    """The text of ``perf script`` with call chains, as a program of 3000 functions gives it.

    Chains are walks down a call tree, 4 to 20 frames deep; the sampled address differs from sample to sample, so do the
    places of the calls in 1 of 4 chains, and periods differ as those of a frequency (-F) do.
    """
    generator = random.Random(SEED)
    functions = [f"app::{WORDS[k % len(WORDS)]}_{k}(double*, int)" for k in range(3000)]
    stems = []
    for _ in range(4000):
        depth = generator.randrange(3, 19)
        stems.append([(generator.randrange(3000), 16 * generator.randrange(1, 400)) for _ in range(depth)])
    weights = [1 / (k + 1) for k in range(len(stems))]
    start = (
        "\t          401136 main+0x36 (/home/me/app)\n"
        "\t    7f54a1c2724a __libc_start_call_main+0x7a (/usr/lib/x86_64-linux-gnu/libc.so.6)\n\n"
    )
    moment = 1000.0

    def line(function: int, offset: int) -> str:
        return f"\t{0x401000 + 0x2000 * function + offset:16x} {functions[function]}+{offset:#x} (/home/me/app)\n"

    with file.open("w") as out:
        for stem in generator.choices(stems, weights, k=samples):
            moment += 0.001 + 0.0001 * generator.random()
            period = generator.randrange(900_000, 1_100_000)
            chain = list(stem)
            chain[0] = (chain[0][0], generator.randrange(0x1000))
            if generator.random() < 0.25:
                at = generator.randrange(len(chain))
                chain[at] = (chain[at][0], generator.randrange(0x1000))
            body = "".join(line(*frame) for frame in chain)
            process = 5843 + generator.randrange(4)
            head = f"app {process:>7}/{process} [00{process % 4}] {moment:13.6f}:    {period} cycles:u: \n"
            out.write(f"{head}{body}{start}")
