"""What else grows with the ranks where domains get no fuller: messages, imbalance, work that every rank repeats.

The law of shared bandwidth knows of nothing that grows from one full domain to many. Over the configurations whose
fullest domain is as full as it ever was, measured times T follow those of the law, L, and what adds to them:

    ln T = ln L + s + b ln(P / P_0) + ln(1 + a h) + noise,    h = f g(P) L_0 / (g(P_0) L),

with P_0 the most ranks measured, a what was added there in parts of the law's time, g = 1, log2 P, sqrt P or P, f = 1,
or from the second node on what messages are dearer there, and b a drift. What adds to a part that shrinks as 1 / P
grows against it as P g(P), which no slope over few runs says. s and b are normal and are integrated over in closed
form; a, g, f, the noise and the width of b's law are taken through a grid and weighed by the evidence of the times, so
that forms that the runs do not tell apart are all in the interval, which is a quantile of the mixture.

Times alone from one domain that may have been full from the first tell neither that work is divided nor that it is not:
a full interface, a serial part and weak scaling look alike. What several domains make of them is not told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranksight.errors import InputError
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.drift import expected_drift
from ranksight.model.uncertainty.forecast import FEW_POINTS, OK, WIDEST, Forecast, too_wide
from ranksight.model.uncertainty.mixture import quantiles

Array = NDArray[np.float64]

UNTOLD = (
    "times alone inside one memory domain that do not fall as 1 / ranks do not tell what further domains bring: "
    "measure fewer ranks as well, or count instructions"
)
NOTHING = (0.8, 0.3)
"""Probability before the data that nothing adds to the law's time, and of a whole program on several nodes: inside a
node messages go through memory, and they are kernels of their own where kernels were told apart."""
ADDED = np.geomspace(0.003, 30.0, 25)
"""Grid of a, all alike before the data."""
FORMS = (np.ones_like, np.log2, np.sqrt, np.positive)
"""g."""
DEARER = (1.0, 2.0)
"""Grid of f."""
DRIFTS = ((1.0, 0.8), (5.0, 0.2))
"""Widths of the law of b, in expected drifts, and their probabilities."""
NOISE = ((0.5, 0.2), (1.0, 0.4), (2.0, 0.25), (4.0, 0.15))
"""Noise, in scatters of the times around the law, and probabilities."""
LEAST = 0.01
"""Scatter below which none is believed of a few times."""
LEVEL = 1.0
"""Width of the law of s."""
MINOR = 1e-4
"""Weight below which a component is left out."""


@dataclass(frozen=True)
class Beyond:
    """What K kernels do beyond the ranks measured, from their n configurations with the fullest domains.

    Attributes
    ----------
    active : int
        Ranks in the fullest domain.
    ranks, nodes : (n,)
    law, left : (K, n)
        Times by the law, and logarithm of the measured over them; NaN where missing.
    scatter : (K,)
        Of the logarithm around the law.
    guessed : (K,) bool
        Kernels of which nothing tells how their work is divided.
    whole : (K,) bool
        Those that are whole programs.
    """

    active: int
    ranks: Array
    nodes: Array
    law: Array
    left: Array
    scatter: Array
    guessed: NDArray[np.bool_]
    whole: NDArray[np.bool_]

    def silent(self, ranks: Array, active: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Where (K, k) the law has nothing to say: inside one domain of kernels whose work is guessed."""
        return np.asarray(self.guessed[:, None] & (ranks <= active)[None, :])

    def take(self, given: Forecast, ranks: Array, nodes: Array, active: NDArray[np.intp]) -> Forecast:
        """The forecast (K, k) of the law, with what else grows."""
        lost = self.guessed[:, None] & (ranks > active)[None, :] & (given.status == OK)
        status, reason = np.where(lost, FEW_POINTS, given.status), np.where(lost, UNTOLD, given.reason)
        value, lower, upper = given.value.copy(), given.lower.copy(), given.upper.copy()
        where = np.flatnonzero(active == self.active)
        for row in np.flatnonzero(self.told) if len(where) else ():
            law = given.value[row, where]
            low, middle, high = self._parts(int(row), law, ranks[where], nodes[where], given.level)
            with np.errstate(invalid="ignore", divide="ignore"):
                down, up = np.log(law / lower[row, where]), np.log(upper[row, where] / law)
            value[row, where] = law * np.exp(middle)
            lower[row, where] = law * np.exp(middle - np.hypot(down, middle - low))
            upper[row, where] = law * np.exp(np.minimum(middle + np.hypot(up, high - middle), 50.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = upper / lower
        wide = ~(ratio <= WIDEST) & (status == OK)
        reason[wide] = too_wide(ratio[wide])
        status = np.where(wide, forecast.WIDE, status).astype(np.intp)
        return replace(given, status=status, reason=reason, value=value, lower=lower, upper=upper)

    @cached_property
    def told(self) -> NDArray[np.bool_]:
        """Kernels (K,) known at two numbers of ranks and more."""
        ranks = np.where(np.isfinite(self.left), self.ranks, np.nan)
        with np.errstate(invalid="ignore"):
            return np.asarray(np.fmax.reduce(ranks, axis=1) > np.fmin.reduce(ranks, axis=1))

    def _parts(self, row: int, law: Array, ranks: Array, nodes: Array, level: float) -> tuple[Array, Array, Array]:
        """Quantiles of the logarithm of time over `law` (k,) of one kernel."""
        known = np.isfinite(self.left[row])
        own, y, p, n = self.law[row, known], self.left[row, known], self.ranks[known], self.nodes[known]
        last = int(p.argmax())
        x, ahead = np.log(p / p[last]), np.log(ranks / p[last])

        def added(form: Any, dearer: float, p_: Array, n_: Array, law_: Array) -> Array:
            size = form(p_) * np.where(n_ > 1, dearer, 1.0)
            return np.asarray(
                size / max(float(form(p[last]) * (dearer if n[last] > 1 else 1.0)), 1e-300) * own[last] / law_
            )

        grid = list(product(FORMS, DEARER))
        h = np.array([added(form, dearer, p, n, own) for form, dearer in grid])
        there = np.array([added(form, dearer, ranks, nodes, law) for form, dearer in grid])
        a = np.concatenate([[0.0], ADDED])
        nothing = NOTHING[int(self.whole[row] and max(n.max(), nodes.max()) > 1)]
        before = np.concatenate([[nothing], np.full(len(ADDED), (1 - nothing) / len(ADDED))]) / len(grid)
        z = y - np.log1p(a[:, None, None] * h).reshape(-1, len(y))
        gone = np.log1p(a[:, None, None] * there).reshape(len(z), -1)
        before = np.repeat(before, len(grid))
        weights, centres, spreads = [], [], []
        for (times, first), (part, second) in product(DRIFTS, NOISE):
            tau, sigma = times * expected_drift("time"), part * max(float(self.scatter[row]), LEAST)
            precise = np.array([[len(x), x.sum()], [x.sum(), (x * x).sum()]]) / sigma**2
            precise += np.diag([1 / LEVEL**2, 1 / tau**2])
            cover = np.linalg.inv(precise)
            moment = np.stack([z.sum(axis=1), z @ x], axis=1) / sigma**2
            mean = moment @ cover
            evidence = -0.5 * ((z * z).sum(axis=1) / sigma**2 - (mean * moment).sum(axis=1))
            evidence += 0.5 * np.log(np.linalg.det(cover)) - np.log(LEVEL * tau) - len(x) * np.log(sigma)
            weights.append(np.log(before * first * second) + evidence)
            at = np.stack([np.ones_like(ahead), ahead])
            centres.append(mean @ at + gone)
            spreads.append(np.broadcast_to(np.sqrt(np.einsum("ik,ij,jk->k", at, cover, at)), gone.shape))
        weight = np.concatenate(weights)
        weight = np.exp(weight - weight.max())
        held = weight > MINOR
        shape = (int(held.sum()), len(ranks))
        low, middle, high = quantiles(
            ((1 - level) / 2, 0.5, (1 + level) / 2),
            np.broadcast_to((weight[held] / weight[held].sum())[:, None], shape),
            np.concatenate(centres)[held],
            np.concatenate(spreads)[held],
            np.full(shape, 1e6),
        )
        return low, middle, high

    def to_dict(self) -> dict[str, Any]:
        """Plain data that JSON can hold."""
        blank = {
            name: [[None if np.isnan(x) else float(x) for x in row] for row in getattr(self, name)] for name in ROWS
        }
        return blank | {
            "active": self.active,
            "ranks": self.ranks.tolist(),
            "nodes": self.nodes.tolist(),
            "scatter": self.scatter.tolist(),
            "guessed": self.guessed.tolist(),
            "whole": self.whole.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], kernels: tuple[str, ...]) -> Beyond:
        """Rebuild from :meth:`to_dict`; damaged content raises InputError."""
        try:
            ranks, nodes, scatter = (
                np.array(content[name], dtype=np.float64) for name in ("ranks", "nodes", "scatter")
            )
            law, left = (
                np.array([[np.nan if x is None else float(x) for x in row] for row in content[name]], dtype=np.float64)
                for name in ROWS
            )
            active = int(content["active"])
            guessed, whole = (np.array(content[name], dtype=np.bool_) for name in ("guessed", "whole"))
        except (KeyError, TypeError, ValueError, OverflowError) as cause:
            raise InputError(f"'beyond' is damaged: {cause}", "fit the model again") from cause
        shapes = law.shape == left.shape == (
            len(kernels),
            len(ranks),
        ) and scatter.shape == guessed.shape == whole.shape == (len(kernels),)
        sound = shapes and ranks.shape == nodes.shape and active >= 1 and np.isfinite(scatter).all()
        if not (sound and (ranks >= 1).all() and (nodes >= 1).all() and (law[np.isfinite(left)] > 0).all()):
            raise InputError("'beyond' does not fit together", "fit the model again")
        return cls(active, ranks, nodes, law, left, scatter, guessed, whole)


ROWS = ("law", "left")
