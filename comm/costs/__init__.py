"""Costs of MPI operations on a network: point-to-point, and every collective by algorithm.

Each algorithm is a function ``(ranks, size, fabric) -> seconds``, vectorised over arrays of ranks and sizes, registered
in :data:`ranksight.comm.costs.collective.COLLECTIVES` under ``operation/algorithm``: see :mod:`.algorithms`.
"""
