"""Priors of the model, what is believed before the data, and its thresholds, each with unit, meaning and source."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

FORMS: Mapping[str, float] = {
    "constant": 1.0,
    "alone": -1.0,
    "falls and grows": -2.0,
    "more": -4.0,
    "nested": -2.0,
    "completed": -3.0,
    "completed by a product": -5.0,
    "beyond ideal": -1.0,
    "process grid": -1.0,
    "one side": -1.0,
    "work per rank": 2.0,
}
"""Logarithms of the weight of a form, 1, relative to a constant with one term or one product: the constant by itself,
one form that stands for a whole kind of behaviour; a term without a constant; two terms, one of which falls; others of
two or three, of which there are many; a product with one of its factors; two terms with one more that explains what
they leave, of one parameter or of several; a decay faster than the division of work, which needs caches that take in
more with every rank; a term of a process grid of several dimensions, and of one of its sides; and any function of the
work per rank. Chosen by ``python -m benchmarks choices``."""
FACTORS: Mapping[str, float] = {
    "none": 30.0,
    "share": 300.0,
    "whole": 1.0,
    "half or third": 1 / 3,
    "other": 1 / 10,
    "logarithm": 1 / 3,
}
"""How often a factor stands along one of several coordinates of a term, to a constant: none; the power of a size that
makes a power of the ranks one of each rank's share of the work, such as n^3 with 1 / p; whole powers and one
logarithm; halves and thirds, the sides and faces of what a size counts; other powers; less by the last where a power
and a logarithm stand together, or the logarithm has a power of its own. Judgement: most terms depend on few
parameters."""
DIVIDED_ASIDE = -3.0
"""Logarithm of the odds, 1, of a term that falls along one coordinate and does not depend on another, along which
another term grows: what is divided is work, and work grows with the size. Judgement."""
SEVERAL = 1.0
"""Logarithm of the odds, 1, against a mean of several terms before any curve was seen: there are more of them. Chosen
by ``python -m benchmarks prevalence``."""
WAITING: Mapping[str, float] = {"late": 1.05, "differs": 0.2, "runs": 0.75}
"""How waiting for slow ranks is known, 1: the longest time of a rank over the mean from which on ranks do not end
together, as clocks scatter by a few per cent; the part of what slowest ranks of all kernels take longer than one rank
up to which waiting may differ from it, and the part of the runs in which it does not differ by more, where ranks wait
after every kernel. Judgement: real messages take less than that of what is uneven."""
GROWTH_UNSEEN = 1.0
"""Logarithm of the odds, 1, against an e-fold of growth ahead that nothing within the points has shown, for each
parameter and each term besides the first: with every one of them there are as many times more forms that show it by
chance."""
NEGATIVE = 2.0
"""Logarithm of the odds against a negative coefficient, 1: parts of a whole rarely subtract."""
CANCELLING = 2.0
"""Power with which the density of coefficients falls beyond shares of the whole, 1: Cauchy's tails. Terms many times
larger than their sum cancel, and what they leave is an accident of the points."""
RARE_TERM = -2.0
"""Logarithm of the odds, 1, of what messages and the start of a program rarely do with the ranks: a message to each of
them, or shares that get smaller, where a tree is usual, and at the start a tree, where one after the other is."""
ANOTHER_REGIME = -3.0
"""Logarithm of the odds, 1, that a law changes between two values: one series in twenty."""
FORMS_WORTH = 20.0
"""Series that the weights of forms count for, 1, compared with those of the experiment."""
WORTH = 5.0
"""Kernels that the weights of the laws of a time count for before the runs, 1."""
FOREIGN_GRID = 0.02
"""Probability that what goes by a process grid goes by another one than most kernels do, 1."""
NEIGHBOURS: Mapping[str, float] = {"mixed": 0.5, "unequal": 0.05, "once": 0.5, "edges": 0.5, "constant": 0.5}
"""Weights of grids of neighbours, 1: of all that are periodic in some dimensions only, where one that is in all or none
has 1; factor of one on which directions cost differently, where on another they cost the same; of sending once to a
neighbour that is met both ways, where sending both ways has 1; of all domains together whose edges differ more than
those of another that fits; of messages of one length, where faces of blocks meet the bytes as well."""
RANK_SUMS: Mapping[str, float] = {
    "term": 2.0,
    "fewest ranks": 1.0,
    "other ranks": 1.5,
    "dimension": 0.25,
    "side": 1.5,
    "cyclic": 1.5,
}
"""Costs of an exact sum over the ranks, logarithms of odds: of a term, of leaving the fewest ranks out, of leaving
another number out, of a grid's dimension, of a term of one of its sides alone, and of blocks dealt out in turn, which
few libraries of linear algebra have."""
PARTNERS_END = 1 / 3
"""Probability that what went by all other ranks in every run is of partners that end, those of a band, a stencil or a
group, 1. It may be an operation of all ranks or a loop over them, too, and each is as likely before the runs. Of eight
counts of real and mini-programs that were linear in up to 8 ranks, one ended."""
PARTNERS_MOST = 64
"""Partners of a rank up to which those of bands, stencils and groups are looked for, 1: stencils of one layer have
26, groups of a node some tens."""
POISSON_POWER = 2.0
"""Standard deviation of the power with which samples follow a parameter, 1: work is constant, divided, or a volume."""
BETWEEN_JOBS = 0.04
"""Standard deviation of the logarithm of a time between jobs, 1, which repetitions within one job do not show: other
nodes, other days; also that of a time that was never repeated, before anything else is known."""
DRIFT_FREEDOM = 5.0
"""Degrees of freedom of drift, 1: Student's law of these, with the mean of the law of tau before the data as its scale,
has the 90 % interval of the normal laws mixed over it (:func:`ranksight.model.uncertainty.drift.before`)."""
CPI_SPREAD = (0.3, 0.8, 1.5)
"""Least, usual and largest standard deviation of the logarithm of kernels' cycles per instruction over the program's,
1."""
FREEDOM = 4.0
"""Degrees of freedom, 1, of Student's law of what times are off by, where held-out values weigh the laws of a time, and
around the law of shared bandwidth: one bad value excludes no law."""
NO_STREAM = 0.5
"""Probability that no stream of a kernel moves from one cache to another, 1."""
SHARPNESS = (1.0, 2.0, 4.0, 8.0)
"""Powers of the step from one cache to the next, 1, each as likely as the others: associativity and several arrays
soften a step, a single swept array makes it sharp."""
TRAFFIC = 0.3
"""Standard deviation of the powers and factors, 1, with which traffic follows the work and the occupancy of a
domain."""
BANDWIDTH: Mapping[str, float] = {"platform": 0.15, "none": 1.0, "loads": log(2)}
"""Standard deviation of the logarithm of a memory interface's bandwidth, 1: where a platform gives that of a full
domain, where none does, and where bytes are what loads make of them."""
BANDWIDTH_BEYOND = (0.1, 0.2)
"""Standard deviation of the logarithm of a saturated interface's bandwidth per e-fold of the ranks in a domain beyond
those measured, 1, where a platform gives the bandwidth of a full domain, and where it does not."""
NOTHING_ADDS = (0.8, 0.3)
"""Probability that nothing adds to the time of the law of shared bandwidth, 1, and that of a whole program on several
nodes: inside a node messages go through memory, and they are kernels of their own where kernels were distinguished."""
BEYOND_LEVEL = 1.0
"""Standard deviation of the logarithm of the level of times against that law, 1: nothing is known of it."""
RATE_SLOPE = 0.3
"""Standard deviation of the power with which a rate follows a coordinate, 1; blocking factors of the programs in Ding
et al. 2018, figure 8, fall with powers up to 0.9, CPI without stalls with powers below 0.1."""
RATE_LEVELS = 0.5
"""Probability that a rate which changes steadily levels off, 1, and does not follow a power law: both are as likely
before the data."""
RATE_KNEE = 2.0
"""E-folds from the centre of the change at which such a rate levels off, 1: what lies between two constants in
proportion to a part x / (x + x0) has a logarithm that changes as tanh(u / 2)."""
RATE_CENTRES = (-2.0, -1.0, 0.0, 1.0, 2.0)
"""Centres of the change from that of the runs, in e-folds: closer together than the knee, from runs that show the end
of a change to runs that show its beginning."""
RATE_SHAPE = 0.03
"""Standard deviation of the logarithm of such a rate about that shape, 1, as a smooth change: constants far apart turn
elsewhere than tanh does."""
RATE_SCALES = (0.005, 0.03, 0.15, 0.7)
"""Standard deviations of the logarithm of a rate about its power law, 1: from repeatable to a change of regime."""
RATE_LENGTHS = ((True, 6.0), (False, 2.0))
"""Roughness (Matern smoothness 1/2 or 3/2) and correlation length in e-folds of a coordinate: nearly a random walk,
and a smooth change within a factor of ten of the work per rank."""
RATE_SMOOTH_SHARE = 0.5
"""Prior probability that a rate departs from a power law at all, 1."""
RATE_NOISE = (0.0, 0.005, 0.03, 0.15)
"""Standard deviations of a rate between configurations beyond its repetitions, 1; 0.03 is the usual scatter of times
between jobs, 0.15 that of a shared machine."""
MESSAGES_AHEAD: Mapping[str, float] = {"prices": 0.8, "replay": 0.06}
"""Root mean square of the logarithm, 1, of what communication takes on 2 to 32 times the ranks over BF_comm times
prices, and over replay as runs showed it; to one digit what ``python -m benchmarks network`` finds over all its
cases."""
COMMUNICATION_UNKNOWN = 0.67
"""Standard deviation of the logarithm of BF_comm, 1, where no communication time was measured: 90 % within a factor of
3, from messages that overlap with computation to ranks that wait for each other."""
BLOCKING_SHAPES = {"constant": 0.4, "growth": 0.2, "levelling": 0.2, "step": 0.1, "knee": 0.1}
"""Prior weights of how BF_comm goes with the ranks, 1: constant or a power with slow changes, or one of the shapes of
:mod:`ranksight.model.application.blocking_forms`."""
ALGORITHMS = {"default": 0.3, "libraries": 0.15, "algorithms": 0.15}
"""Prior weights of which algorithms do a collective where nobody states it, 1: those that the usual library chooses,
another library chooses, or one algorithm at all sizes, such as settings and sites choose."""
CONTINUED = 0.4
"""Prior weight of the algorithm that the usual library takes in the runs, going on beyond them, 1: libraries change to
what is faster, so that a change to what looks slower is doubtful."""
NODE_REGIMES = {"one": 0.75, "step": 0.15, "own": 0.1}
"""Prior weights, 1, of what the boundary of a node does to what ranks do together: nothing, a step, or runs within a
node follow a law of their own."""
NODE_STEP = 1.1
"""Standard deviation of the logarithm of that step, 1; to one decimal what ``python -m benchmarks node_step`` finds
among timers of messages, of which the part 1 - ``NODE_REGIMES["one"]`` has a step."""
BEND = 0.5
"""Standard deviation, 1, of the curvature of ln y over the slope, where two values of a parameter show the slope alone:
a constant and a power q have q - s of it at a slope s, 0.3 to 0.7 where both are as large."""
PROGRAM_STEP = 0.3
"""Standard deviation of the logarithm, 1, of what whole programs take on two nodes over what they would if their time
went on from one as it does from two to four; to one digit what ``python -m benchmarks node_step`` finds."""
EXECUTION_PER = {"instructions": 0.5, "flops_dp": 0.2, "work per rank": 0.2, "nothing": 0.1}
"""Prior weights of what execution cycles are proportional to, 1: instructions (Ding et al. 2018, equation 1), or
floating-point operations where waiting adds instructions."""
STALLS_PER = {
    "waiting": 0.4,
    "waiting beyond L1": 0.2,
    "instructions": 0.15,
    "bytes_mem_read": 0.1,
    "work per rank": 0.15,
}
"""Prior weights of what stall cycles are proportional to, 1: loads of each level times its latency (Ding et al. 2018,
table 2)."""
TIME_PER = {"instructions": 0.5, "flops_dp": 0.2, "work per rank": 0.25, "nothing": 0.05}
"""Prior weights of what time as a whole is proportional to, 1: the cost per unit of work of the last configuration is
the trivial law that others have to beat."""
REPEATED = 0.01
"""Standard deviation of the logarithm of a time between runs that no interval goes below, 1: other nodes, other
days."""
INDEPENDENT = 0.5
"""Part of what makes one repetition odd, 1, that does not act on the others: some slow runs have their nodes or their
neighbours in common, and some do not. Between none and all, which the published curves of ``python -m benchmarks
prevalence`` and curves that rise at the end ask for in turn."""
LATE_SLOPE = 0.61
"""Standard deviation of the slope of ln y over ln x, 1, of a part of which one value is known: 90 % between work that x
divides, -1, and what each of them adds to, 1."""
UNSEEN = 0.01
"""Standard deviation of the logarithm of a time per e-fold of a coordinate beyond the runs, 1: what no run shows."""
FAR = 6.0
"""E-folds of a coordinate beyond the runs from which on what no run shows grows faster than the distance."""
CHANGE = 0.5
"""Standard deviation of the power by which a cost per unit of work changes its slope at a change of regime, 1: between
a constant time and ideal scaling lies 1. After R e-folds of a coordinate without one, it comes within the next d with
the probability d / (R + d) (rule of succession of a uniform prior of its place)."""
GROWTH_KEPT = 0.5
"""Part of the logarithmic growth with the ranks of bytes per unit of work, and of a time that does not shrink, that
goes on beyond a memory domain, 1, where one domain was measured: the rest is what sharing it did. Chosen by the mean
error of SPEChpc programs on the further domains of a node, each also with the choice of the others
(``python -m benchmarks shrinkage``)."""
STALLS_UNCOUNTED = 0.2
"""Part of a time, 1, that may be stalls at least where no counter shows them: Ding et al. 2018, figure 8, have kernels
from 3 to 42 %, and times alone do not separate stalls from execution any better."""
PLATFORM_CLOCK = 0.06
"""Standard deviation of the logarithm of the clock that runs had about a platform's nominal one, 1, where neither their
times nor the clock were measured: 90 % within 10 %; processors with all cores at work run 4 to 16 % above it (Intel,
specification updates: Xeon E5-2600 v3, turbo of all cores), vector units below.
"""
DRIFT = 0.06
"""Standard deviation of the exponent by which a measured quantity leaves its function beyond the runs, per e-fold of a
parameter, 1; chosen by ``python -m benchmarks choices``."""
UNDIVIDED = 0.7
"""Power of a ratio of machines with which what more nodes do not divide changes, 1: 0.8 by strong scaling of GROMACS,
0.6 by that of OpenSBLI, each judged by the other (``python -m benchmarks ratios``)."""
HIDDEN_DIVIDED = 0.03
"""Standard deviation of the exponent of a hidden parameter in the part of a time that is divided work, 1."""
HIDDEN_UNDIVIDED = 1 / 3
"""Scale of that exponent in the rest, 1: between the logarithms of trees and the proportion of gathering, as halos of
three-dimensional domains."""

# Thresholds: what is technical or physical, and no belief.
STALL_RESOLUTION = 0.002
"""Stall cycles over cycles, 1, below which a counter of stalls says nothing: skid, interrupts and the counter's own
definition are larger."""
DOMAIN_FULL = 0.97
"""Traffic over the bandwidth of a memory domain, 1, from which on the domain is full: calibrations repeat to 3 %."""
CORE_CLOCKS = (0.5, 1.6)
"""Cycles a second over the platform's clock, 1, that a core at work can have: lowest frequency of vector units,
turbo."""
STEADY_CYCLES = 0.05
"""Largest deviation of the logarithm of cycles over time from its median, 1, of kernels whose cycles say how times
change."""
HELD_OUT_REST = 3
"""Values of a parameter that remain where its largest are held out: a rate and its change need so many."""
HELD_OUT_DEEPEST = 2
"""Largest values of a parameter that are held out together at most: deeper sets cost as much and leave too few runs."""
VAGUE = 0.84
"""Standard deviations of a logarithm to both sides together, 1, from which on a 90 % interval spans a factor of 4
(ln 4 / 1.645): what answers as widely is `insufficient`."""
SHOWN = 0.05
"""Weight of a law, 1, below which an answer does not name it."""
KERNELS_EXCESS = 0.02
"""Share of the program's time, 1, by which its kernels may exceed it: reductions over ranks and repetitions do not
commute."""
OTHERS_NEGLIGIBLE = 0.005
"""Share of the program's time, 1, up to which what is outside of kernels is the error of timers and of adding means
over ranks."""
WAITING_SCATTER = 0.25
"""Standard deviation of the logarithm of the time in which a program's cores are halted, 1, from job to job: 90 % of
the runs of six programs of SPEChpc tiny on Ice Lake about a share of the running time and a constant (0.27).
Repetitions inside one job show less."""
DIVIDED_SLOPE = 0.1
"""Fall of ln y per e-fold of ranks, 1, from which on a time shows divided work: sharing and waiting only lengthen
times, and what is constant per rank falls by scatter or a small part alone."""
TURNOVER = 1e-3
"""Share of a metric's total, 1, from which kernels that work at some numbers of ranks only are a sign of a program that
changes its algorithms: of eight programs that were looked at, GROMACS, HPCC, PETSc and CP2K, which do, show more."""

POWER_SHARES: Mapping[str, tuple[float, float]] = {"base": (0.4, 0.15), "cores": (0.4, 0.4)}
"""Mean and standard deviation, as shares of the largest power of a package, 1, of what it takes with no core at work
(its power extrapolated to no cores), and of its active cores. Afzal, Hager and
Wellein, "SPEChpc 2021 benchmarks on Ice Lake and Sapphire Rapids InfiniBand clusters" (2023): 40 to 50 % of the thermal
design power, on older processors less than half as much."""
COUNT_ENERGY: Mapping[str, tuple[float, float]] = {"instructions": (0.3, 0.8), "bytes_mem": (0.2, 0.6)}
"""Energy of an instruction, and of a byte of memory traffic on its way through a package, and its standard deviation,
nJ: 70 pJ of overhead an instruction besides its operation and caches, 0.1 nJ for 8 B in a large cache (Horowitz,
"Computing's energy problem", ISSCC 2014); how wide is a judgement, as wires and prefetchers are not in it."""
WINDOWS: Mapping[str, float] = {"agree": 9.0, "lack ranges": 0.5, "hold others": 0.45}
"""Windows of a meter of ten, 1, that agree with one law of power, lack whole ranges of their counter, and hold other
jobs' energy, before the runs: a judgement."""
WINDOW_LACKS = 0.005
"""Probability, 1, that a window lacks energy which no range of a counter explains: a judgement."""
HALTED_POWER = (0.5, 0.15)
"""Share of the power of an awake package that one takes whose cores are all halted, 1, and how uncertain that is, as a
share of the largest power. The deepest sleep leaves a quarter (Anandtech, "Intel 3rd gen Xeon Scalable review", 2021:
27 of 270 W); cores that are halted for a while keep the rest of the package awake."""
DRAM: Mapping[str, tuple[float, float]] = {"awake": (7.0, 1.5), "bytes_mem": (0.135, 0.035)}
"""Watts of the memory modules of a package that move nothing, and nJ of a byte moved, with their standard deviations:
fourteen programs on two machines with eight modules a package (``python -m benchmarks energy_priors``), each fitted
to all of its runs; without one of the programs 6.9 to 7.2 W and 0.126 to 0.141 nJ. A program that jumps through its
data takes more for a byte. Horowitz, "Computing's energy problem", ISSCC 2014: 0.16 to 0.33 nJ, and less in later
generations."""
POWER_SCATTER = 0.01
"""Relative standard deviation of the power of a window, 1, before the runs: RAPL against a reference (Hackenberg et
al., "An energy efficiency feature survey of the Intel Haswell processor", 2015)."""
POWER_WORTH = 2.0
"""Windows that POWER_SCATTER counts for, 1."""
POWER_DRIFT: Mapping[str, float] = {"package": 0.035, "dram": 0.08, "node": 0.035, "job": 0.035}
"""Relative standard deviation of the law of power at e times the cores that were measured, 1, for each component:
other packages differ, and memory modules more. Six programs on two machines have 0.032 and 0.079 (``python -m
benchmarks energy_priors``), those other than one up to 0.035, which is taken; single ones up to 0.045. Nodes are
taken as packages."""
RATE_DRIFT = 0.23
"""Standard deviation of the logarithm of instructions or bytes a second of a core at e times the cores that were
measured, 1, by all programs of ``python -m benchmarks energy_priors``: 0.16 to 0.33 by those other than one."""
STARTING = (1.1, 0.15)
"""Power of the nodes with which the seconds grow from the start of a program's first rank to that of its last, and its
standard deviation, 1: nodes are started one after another. Four programs on 4 to 16 nodes have 1.09 +- 0.06 (``python
-m benchmarks energy_priors``), start of MPI on 1,024 to 4,608 nodes of Summit has 1.2 (SCREAM). Launchers that start
nodes as a tree need no time that shows."""
