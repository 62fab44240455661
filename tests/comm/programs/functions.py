"""Calls MPI from functions of every kind; with the argument ``threads`` while a second thread runs."""

import sys
import threading
import time

from mpi4py import MPI

world = MPI.COMM_WORLD


class Ring:
    def shift(self):
        return world.sendrecv(world.rank, dest=(world.rank + 1) % world.size, source=(world.rank - 1) % world.size)


def main():
    ring = Ring()
    for _ in range(10):
        ring.shift()
    (lambda: world.allreduce(1))()
    try:
        raise ValueError
    except ValueError:
        world.Barrier()
    world.bcast(sum(world.allgather(step)[0] for step in range(3)))


if sys.argv[1:] == ["threads"]:
    done = threading.Event()
    other = threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(done.is_set, True)])
    other.start()
    main()
    done.set()
    other.join()
else:
    main()
