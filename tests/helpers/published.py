"""Tables that the papers print, as tests and docs/papers.py recompute them."""

from __future__ import annotations

import numpy as np

# ---- Shudler et al. 2015: expectations of MPI libraries --------------------------------------------------------------
MACHINES = ("Juqueen", "Juropa", "Piz Daint")
T, A, N = "total", "approximate", "none"
# Function, expectation; then for each machine model, adjusted R2, divergence, match.
TABLE_2 = {
    "Barrier": ("log p", ("log p", 0.99, "1", T), ("p^0.67 log p", 0.99, "p^0.67", N),
                ("p^0.33", 0.99, "p^0.33/log p", A)),
    "Bcast": ("log p", ("log p", 0.86, "1", T), ("p^0.5", 0.98, "p^0.5/log p", A), ("p^0.5", 0.94, "p^0.5/log p", A)),
    "Reduce": ("log p", ("log p", 0.93, "1", T), ("p^0.5 log p", 0.99, "p^0.5", A), ("p^0.5 log p", 0.94, "p^0.5", A)),
    "Allreduce": ("log p", ("log p", 0.87, "1", T), ("p^0.5", 0.99, "p^0.5/log p", A),
                  ("p^0.67 log p", 0.99, "p^0.67", N)),
    "Gather": ("p", ("p", 0.99, "1", T), ("p", 0.99, "1", T), ("p", 0.99, "1", T)),
    "Allgather": ("p", ("p", 0.99, "1", T), ("p", 0.98, "1", T), ("p^1.25", 0.99, "p^0.25", A)),
    "Alltoall": ("p log p", ("p", 0.99, "1/log p", A), ("p^1.25", 0.99, "p^0.25/log p", A),
                 ("p^1.33", 0.99, "p^0.33/log p", A)),
    "Bcast_tree": ("log p", ("log p", 0.99, "1", T), ("p^1.25 log p", 0.99, "p^1.25", N), ("p log p", 0.99, "p", N)),
}  # fmt: skip
TABLE_3 = {
    "MPI_memory": ("log p", ("log p", 0.72, "1", T), ("p", 1.0, "p/log p", N), ("log p", 0.23, "1", T)),
    "Comm_create": ("p", ("p", 1.0, "1", T), ("p", 1.0, "1", T), ("p", 0.99, "1", T)),
    "Comm_dup": ("1", ("1", np.nan, "1", T), ("1", np.nan, "1", T), ("p", 0.99, "p", N)),
    "Win_create": ("p", ("p", 1.0, "1", T), ("p", 1.0, "1", T), ("p", 0.99, "1", T)),
    "Cart_create": ("p", ("p", 0.99, "1", T), ("p", 1.0, "1", T), ("p", 0.99, "1", T)),
}
# Coefficients (constant, slope) of Table 3, MB for the first row and B for the others.
COEFFICIENTS = {
    "MPI_memory": ((0, 10.7e-3), (16, 0.56), (46, 1.35)),
    "Comm_create": ((2.2e5, 24), (264, 28), (3770, 46)),
    "Comm_dup": ((2.2e5, 0), (256, 0), (3770, 18)),
    "Win_create": ((0, 96), (256, 60), (3287, 118)),
    "Cart_create": ((2.2e5, 52), (356, 24), (2545, 63)),
}
# Table 4: expectation, model, divergence, match, with the default deviation limits.
MAFIA = {
    "gen": ("k^3 2^k", "k^4 2^k", "k", A),
    "dedup": ("k^4 2^k", "k^4 2^k", "1", T),
    "pcount": ("k 2^k", "k 2^k", "1", T),
    "unjoin": ("k^3 2^k", "k^2 2^k", "1/k", A),
}

# ---- Panadero et al.: phases of the NAS benchmarks -------------------------------------------------------------------
RANKS = np.array([16, 25, 36, 49, 64, 81, 100])
INSTRUCTIONS = np.array([1539358893, 820993294, 488835328, 314154733, 213799791, 152035493, 111953973])
WEIGHTS = np.array([1255, 1506, 1757, 2008, 2259, 2510, 2761])
TOTALS = [
    30910326571440,
    30910397519100,
    30919812166656,
    30910312489336,
    30910318583616,
    30910336081830,
    30910491945300,
]
PREDICTED_TOTAL = 30910315829644
PREDICTED = {
    121: (84813133, 3012, 10),
    144: (65784545, 3263, 11),
    1600: (1877266, 10291, 39),
    1681: (1744266, 10542, 40),
    1764: (1623539, 10793, 41),
    1849: (1513701, 11044, 42),
}
# Table 2: ranks, instructions, cycles, misses of the last-level cache, nanoseconds
SMALL = np.array(
    [[16, 34356426, 27621512, 20241, 17263445], [25, 17836224, 14324977, 10275, 8953111], [36, 9915863, 7861580, 5479, 4913488],
     [64, 4027761, 3104163, 1467, 1940102], [81, 2392021, 1721033, 865, 1075646], [100, 1759558, 1265527, 695, 790954]], dtype=float
)  # fmt: skip
# Table 3: phase, ranks asked for, real ns, predicted ns, printed error in %, factor, exponent
SUMMARY = [
    ("BT1", 1024, 1941784, 1982934, 2.11, 9e9, -1.547), ("BT2", 1024, 35960361, 39114740, 8.77, 1e11, -1.132),
    ("BT3", 1024, 165862020, 160857620, 3.01, 2e11, -1.028), ("BT4", 1024, 451140, 480522, 6.51, 3e10, -1.593),
    ("BT5", 1024, 2214673, 2096107, 5.35, 8e10, -1.522), ("BT6", 1024, 36062311, 39114740, 8.46, 1e11, -1.132),
    ("CG1", 4096, 2698523, 2796674, 3.63, 2e10, -1.067), ("CG2", 4096, 137928, 149985, 8.74, 3e7, -0.637),
    ("CG3", 4096, 344297, 375251, 8.99, 2e7, -0.478), ("CG4", 4096, 601238, 562501, 6.44, 8e7, -0.596),
    ("LU1", 4096, 51549, 49647, 3.83, 2e8, -0.998), ("LU2", 4096, 34645, 32573, 6.36, 4e8, -1.132),
    ("SP1", 1024, 165110327, 163103109, 1.21, 4e11, -0.926), ("SP2", 1024, 561715, 598590, 6.56, 4e10, -1.635),
    ("SP3", 1024, 240359, 260203, 8.25, 2e10, -1.623), ("N-BODY1", 4096, 449150, 430921, 4.23, 2e10, -0.975),
    ("QDIM1", 2048, 16428976, 17724522, 7.88, 3e13, -2.039), ("QDIM2", 2048, 26478907, 25170124, 4.94, 5e10, -0.996),
]  # fmt: skip

# ---- Calotoiu et al. 2013 --------------------------------------------------------------------------------------------
# Table 4, kernels that become quadratic: seconds from P4 and its error in %, constant and factor of p^2 from P5, its error.
QUADRATIC = {
    "vlaplace_sphere_wk": (49.53, 99.32, 24.44, 2.26e-7, 4.28),
    "laplace_sphere_wk": (44.08, 99.32, 21.84, 1.96e-7, 2.34),
    "biharmonic_wk": (34.40, 99.33, 17.92, 1.57e-7, 3.43),
    "divergence_sphere_wk": (16.88, 99.31, 8.02, 7.56e-8, 4.25),
    "vorticity_sphere": (9.74, 99.55, 6.51, 7.09e-8, 8.66),
    "divergence_sphere": (15.36, 99.33, 7.74, 6.91e-8, 0.95),
    "gradient_sphere": (14.77, 99.33, 6.33, 6.88e-8, 5.17),
    "advance_hypervis": (9.76, 99.25, 5.5, 3.91e-8, 1.47),
}
# Table 1, Sweep3D at 262,144 processes: share of the runtime in %, T(262k) / T(64), model from P1 and its error in %.
SWEEP3D = {
    "sweep -> MPI_Recv": (65.35, 16.54, "3.99*p^0.5", 6.16),
    "sweep": (20.87, 0.23, "582.19", 0.01),
    "global_int_sum -> MPI_Allreduce": (12.89, 18.68, "0.94*p^0.5 + 0.04*p^0.5*log2(p)", 23.00),
    "sweep -> MPI_Send": (0.40, 0.23, "11.66", 29.00),
    "source": (0.25, 0.04, "6.86 + 9.68e-5*log2(p)", 0.01),
}
SWEEP3D_RANKS = (64, 262_144)
# Table 2, MILC at 65,536 processes: model in s and its error in %.
MILC = {"CGSF": ("0.024", 0.43), "MPI_Allreduce": ("6.30e-6*log2(p)^2", 12.77), "MASFL": ("0.004", 0.04)}
MILC_RANKS = 65_536
# Table 3, MILC over grid points of a process: models of flops, of invocations and of flops per invocation.
MILC_FLOPS = {
    "load_lnglinks": ("5.64e4*V", "2.31e3", "24.42*V"),
    "load_fatlinks_cpu": ("1.95e6*V", "7.14e4", "27.36*V"),
    "ks_congrad": ("1.16e8 + 3.24e5*V^1.25", "5.11e4 + 1.38e4*V^0.25", "15.94*V"),
    "imp_gauge_force_cpu": ("1.65e6*V", "7.40e4", "22.28*V"),
    "eo_fermion_force_twoterms_site": ("4.02e6*V", "1.27e5", "31.61*V"),
}
GRID_POINTS = (81, 256, 400, 625, 900, 1080, 1296, 1512, 1764, 2058, 2401)
"""V of the runs behind table 3 and of the message sizes, 18 s V^(3/4) bytes with s = 4."""
STATED_TARGET = 130_000
"""Processes that the caption of table 4 names."""


def target_of(kernel: str) -> float:
    """Processes at which both models of a kernel of table 4 have their printed errors.

    What was measured there follows from the first, m = t4 / (1 - e4); the second lies e5 above it, a + b p^2 = m (1 + e5).
    """
    flat, short, constant, factor, above = QUADRATIC[kernel]
    measured = flat / (1 - short / 100)
    return float(np.sqrt((measured * (1 + above / 100) - constant) / factor))


# ---- Ding et al. 2018 ------------------------------------------------------------------------------------------------
WORK_PER_RANK = "6*ne^2/ranks"
"""x of HOMME: elements of the cubed sphere over ranks."""
HOMME_RUNS = {32: (12, 24, 36, 48, 96, 120, 768), 256: (512, 768, 1024, 1536, 2048, 3072)}
"""Ranks of the runs of each problem size, figures 3 to 6."""
FLOPS_PER_BYTE = {2: (0.29, 0.01), 8: (1.18, 0.05), 20: (2.94, 0.07)}
"""Table 5, kernel `stress` of CICE: cores, then theoretical and measured flops/byte."""
OPENFOAM = {(3, 2, 2): (18.72, 42.30), (4, 3, 1): (5.65, 4.82)}
"""Figure 10: ranks along x, y and z, then mean idle time in ms and its variance."""
IDLE = 0.15
"""Share of the runtime that the idle time of the first layout is."""
