"""The law of power: what places hold when idle, their active cores, and a price in joules of every byte.

    P = p_halted (packages halted) + p_awake (packages awake) + e_cycle cycles/s + e_instr instr/s + e_byte bytes/s

for packages and for whole nodes; memory modules have a constant and bytes. All coefficients are at least zero. Cores
that wait for memory or in messages count cycles, and spinning ranks instructions, so that both are as dear as they are.
The coefficients are a nonnegative least-squares fit to the power of each window, drawn to what is known of processors
where the runs do not separate them (:mod:`ranksight.model.priors`). A row that no coefficients explain is left out:
another job's, or one whose counter wrapped.

Sources: Hofmann et al., "On the accuracy and usefulness of analytic energy models for contemporary multicore
processors" (ISC 2018), for the form; Lawson and Hanson, "Solving least squares problems" (1974), for the fit.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ranksight.core.arrays import Array, Mask
from ranksight.core.records import dataclass
from ranksight.model import priors
from ranksight.model.energy.metered import COUNTS, OF_NODES, Metered, power
from ranksight.model.plaindata import Stored

HALTED, AWAKE, CORES = "halted", "awake", "cores"
FEWEST, NEXT = 3, 0.01
"""Numbers of cores that separate a package from its cores, and the logarithm up to which two are one."""
UNITS: Mapping[str, tuple[float, str]] = {
    HALTED: (1.0, "W"),
    AWAKE: (1.0, "W"),
    CORES: (1.0, "W"),
    "cycles": (1e9, "nJ"),
    "instructions": (1e9, "nJ"),
    "bytes_mem": (1e9, "nJ"),
}
"""Of each term what one unit of it is, and the unit of its coefficient: watts of a package, nanojoules of a count."""


@dataclass(frozen=True)
class PowerLaw(Stored):
    """Coefficients of the power of one component.

    `terms`: names in :data:`UNITS`; `covariance` (q, q) of the coefficients (q,); `scatter`: relative standard
    deviation of a window's power; `largest`: most cores that a run had; `recorded`: whether packages are counted.
    """

    component: str
    terms: tuple[str, ...]
    coefficients: Array
    covariance: Array
    scatter: float
    largest: float
    rows: int
    measured: Array  # (r,): cores of the runs, which rise
    residual: Array  # (r,): logarithm of the energy measured over what the terms give
    by_cores: bool  # whether runs of as many cores differ in nothing else
    _sizes = "terms:q coefficients:q>=0 covariance:qq largest:>0"

    def residual_at(self, cores: Array) -> Array:
        """The logarithm (k,) by which the nearest runs differ from the terms; beyond the runs that of the largest."""
        return np.asarray(np.interp(np.log(cores), np.log(self.measured), self.residual))

    def _fits(self) -> bool:
        return set(self.terms) <= set(UNITS)

    def joules(self, amounts: Mapping[str, Array]) -> Array:
        """Joules (q, k) of each term, of the amounts (k,) of :func:`amounts_of`."""
        return self.coefficients[:, None] * self.matrix(amounts)

    def matrix(self, amounts: Mapping[str, Array]) -> Array:
        """The amounts (q, k) of this law's terms."""
        return np.array([amounts[name] for name in self.terms], dtype=np.float64)

    def unseen(self, cores: Array) -> Array:
        """Part (k,) of the variance of the terms that the nearest run does not take away, as the law meets its power:
        none at its number of cores, most of it an e-fold from there. All of it where runs differ in more."""
        if not self.by_cores:
            return np.ones(len(cores))
        return np.asarray(-np.expm1(-2 * self.distance(cores)))

    def distance(self, cores: Array) -> Array:
        """How far (k,) so many cores are from the nearest that were measured, in logarithms."""
        return np.asarray(np.abs(np.log(cores[:, None] / self.measured)).min(axis=1))

    def known(self, cores: Array) -> Mask:
        """Whether (k,) the power of so many cores is known: that of others than those measured only from three numbers
        of cores on, as fewer do not separate what a package takes from what its cores take."""
        return np.asarray((len(self.measured) >= FEWEST) | (self.distance(cores) < NEXT))

    def beyond(self, cores: Array) -> Array:
        """Relative standard deviation (k,) of the power that the law gives at so many cores.

        That of a meter and, away from the runs, what the terms miss these by; beyond them the law's own error grows as
        the root of the distance, in logarithms of the cores.
        """
        distance = np.log(np.maximum(cores / self.largest, 1.0))
        within = priors.POWER_SCATTER**2 + self.scatter**2 * self.unseen(cores)
        return np.asarray(np.sqrt(within + priors.POWER_DRIFT[self.component] ** 2 * distance))

    def coefficient(self, name: str) -> float:
        """The coefficient of a term; where packages that are halted have none of their own, that of those awake."""
        known = dict(zip(self.terms, self.coefficients.tolist(), strict=True))
        return float(known.get(name, known[AWAKE]))

    @property
    def idle(self) -> tuple[float, float]:
        """Watts of a place where nothing runs, and their standard deviation: those of a halted package, as a share of
        one that is awake where the runs have none; memory takes what it does without traffic."""
        awake = self.coefficient(AWAKE)
        if HALTED in self.terms or self.component == "dram":
            at = self.terms.index(HALTED if HALTED in self.terms else AWAKE)
            return float(self.coefficients[at]), float(np.sqrt(self.covariance[at, at]))
        share, width = priors.HALTED_POWER
        return share * awake, width * awake / priors.POWER_SHARES["base"][0]

    def formula(self) -> str:
        """The law for people: ``92.4 W a package + 1.52 W ...``."""
        place = "node" if self.component in OF_NODES else "package"
        words = {
            HALTED: f"per {place} halted",
            AWAKE: f"per {place}" if self.component == "dram" else f"per {place} awake",
            CORES: "per active core",
            "cycles": "per cycle",
            "instructions": "per instruction",
            "bytes_mem": "per byte of memory traffic",
        }
        parts = [
            f"{value:.3g} {UNITS[name][1]} {words[name]}"
            for name, value in zip(self.terms, self.coefficients.tolist(), strict=True)
            if value > 0
        ]
        return " + ".join(parts)


def amounts_of(metered: Metered, component: str) -> dict[str, Array]:
    """Amounts (n,) of every term in the windows of `metered`: seconds of places, cores, and counts in 1e9."""
    return amounts(component, metered.places, metered.seconds, metered.awake, metered.counts, metered.cores)


def amounts(
    component: str, places: Array, seconds: Array, awake: Array, counts: Mapping[str, Array], cores: Array
) -> dict[str, Array]:
    """Amounts (k,) of the terms: place-seconds halted and awake, core-seconds, and counts in the units of UNITS."""
    by_term = {
        HALTED: places * np.maximum(seconds - awake, 0.0),
        AWAKE: places * (seconds if component == "dram" else awake),
        CORES: cores * awake,
    }
    return by_term | {name: values / UNITS[name][0] for name, values in counts.items()}


def terms_of(metered: Metered, component: str) -> tuple[str, ...]:
    """The terms that the runs know: without cycles, cores at work stand for them."""
    known = metered.counts
    if component == "dram":
        return (AWAKE, "bytes_mem") if "bytes_mem" in known else (AWAKE, "cycles" if "cycles" in known else CORES)
    halted = (HALTED,) if (metered.awake < 0.999 * metered.seconds).any() else ()
    counted = tuple(name for name in COUNTS if name in known)
    return (*halted, AWAKE, *counted) if "cycles" in known else (*halted, AWAKE, CORES, *counted)


def solved(rows: Metered, component: str, terms: tuple[str, ...]) -> PowerLaw:
    """Nonnegative least squares on relative residuals of power, with rows for what is known before."""
    from scipy.optimize import nnls

    by_term = amounts_of(rows, component)
    watts = rows.joules / rows.seconds
    matrix = _rates(rows, component, terms)
    most = float(power(rows).max())
    believed, means, widths = _believed(component, terms, matrix / rows.places[:, None], most)
    scatter = priors.POWER_SCATTER
    for _ in range(3):
        sigma = scatter * watts
        stacked = np.concatenate([matrix / sigma[:, None], believed / widths[:, None]])
        target = np.concatenate([watts / sigma, means / widths])
        size = np.linalg.norm(stacked, axis=0)
        size[size == 0] = 1.0
        scaled, _ = nnls(stacked / size, target)
        coefficients = scaled / size
        misfit = matrix @ coefficients / watts - 1
        freedom = max(len(watts) - int(np.count_nonzero(coefficients)), 1)
        squares = float((misfit**2).sum())
        count = priors.POWER_WORTH
        scatter = float(np.sqrt((squares + count * priors.POWER_SCATTER**2) / (freedom + count)))
    active = coefficients > 0
    covariance = np.zeros((len(terms), len(terms)))
    precision = stacked[:, active].T @ stacked[:, active]
    covariance[np.ix_(active, active)] = np.linalg.pinv(precision, hermitian=True)
    joules = (np.array([by_term[name] for name in terms]) * coefficients[:, None]).sum(axis=0)
    measured, residual = _residuals(rows, joules)
    by_cores = len(set(rows.configurations)) == len(measured)
    largest = float(measured[-1])
    return PowerLaw(
        component, terms, coefficients, covariance, scatter, largest, len(watts), measured, residual, by_cores
    )


def _residuals(rows: Metered, joules: Array) -> tuple[Array, Array]:
    """Cores of the runs, and logarithms of their energies over those that the terms give; means of repetitions."""
    names = np.array(rows.runs, dtype=object)
    total: dict[float, list[float]] = {}
    for name in dict.fromkeys(rows.runs):
        rows_of_run = names == name
        total.setdefault(float(rows.cores[rows_of_run].sum()), []).append(
            float(np.log(rows.joules[rows_of_run].sum() / joules[rows_of_run].sum()))
        )
    counts = sorted(total)
    return np.array(counts), np.array([np.mean(total[count]) for count in counts])


def expected(rows: Metered, component: str, terms: tuple[str, ...]) -> Array:
    """Joules (n,) of the windows by what is known of the coefficients before the runs."""
    matrix = _rates(rows, component, terms)
    believed, means, widths = _believed(component, terms, matrix / rows.places[:, None], float(power(rows).max()))
    coefficients = np.linalg.lstsq(believed / widths[:, None], means / widths)[0]
    return np.asarray(matrix @ np.maximum(coefficients, 0.0) * rows.seconds)


def surprise(law: PowerLaw, rows: Metered) -> float:
    """Half the sum of squares by which a law's coefficients differ from what is known before the runs, in standard
    deviations."""
    per_place = _rates(rows, law.component, law.terms) / rows.places[:, None]
    believed, means, widths = _believed(law.component, law.terms, per_place, float(power(rows).max()))
    return float((((believed @ law.coefficients - means) / widths) ** 2).sum() / 2)


def _rates(rows: Metered, component: str, terms: tuple[str, ...]) -> Array:
    """Amounts (n, q) of the terms a second."""
    by_term = amounts_of(rows, component)
    return np.asarray(np.array([by_term[name] for name in terms]).T / rows.seconds[:, None])


def _believed(component: str, terms: tuple[str, ...], per_place: Array, most: float) -> tuple[Array, Array, Array]:
    """Rows (p, q) with means and standard deviations (p,) of what is known of the coefficients before the runs.

    Shares of the largest power `most` of a place; see :data:`ranksight.model.priors.POWER_SHARES`.
    """
    at = {name: place for place, name in enumerate(terms)}
    rows, means, widths = [], [], []
    for name in terms:
        row = np.zeros(len(terms))
        row[at[name]] = 1.0
        if name == HALTED:
            share, width = priors.HALTED_POWER
            row[at[AWAKE]] = -share
            mean, spread = 0.0, width * most
        elif component == "dram" and name in priors.DRAM:
            mean, spread = priors.DRAM[name]
        elif name in priors.COUNT_ENERGY:
            mean, spread = priors.COUNT_ENERGY[name]
        else:
            share, width = priors.POWER_SHARES["base" if name == AWAKE else "cores"]
            largest = float(per_place[:, at[name]].max()) or 1.0
            mean, spread = share * most / largest, width * most / largest
        rows.append(row)
        means.append(mean)
        widths.append(spread)
    return np.array(rows), np.array(means), np.array(widths)
