"""From a model to a verdict, or to the reason why there is none.

A match that nothing supports is none: a model with an adjusted R2 of 0.23 says little about growth, whatever its
leading term (the paper's Table 3, MPI memory on Piz Daint, prints it as a total match). A verdict needs

- five values of each parameter (Shudler et al. 2015, section 2.3): with three, one function in ten that grows p
  times faster than expected would pass, at a scatter of 2 % (`python -m benchmarks expectations` with fewer ranks),
- an adjusted R2 of at least 0.5 of what grows: a model that explains less than half of the variance is not used,
- configurations that differ by more than their repetitions do, unless the model is a constant,
- agreement: the functions that explain the measurements, weighed by how well they do, lie on one side of the deviation
  limit with at least nine tenths of their weight, as intervals hold values. Of times, growth as expected is as likely
  as all other before anything was measured,
- of a violation, that the function expected, fitted to the same values, predicts those left out worse by a factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ranksight.analysis.expectations.deviation import Cost
from ranksight.analysis.expectations.document import Expectation, Study
from ranksight.analysis.expectations.match import Match, limit_of, match
from ranksight.analysis.expectations.models import HALF, Explanation, Model
from ranksight.core.records import dataclass
from ranksight.core.units import counted
from ranksight.model.search.growth import Growth

Status = Literal["ok", "insufficient"]
AGREEMENT = 0.9
"""Weight of the hypotheses on the verdict's side of the deviation limit."""

BUSIEST = "busiest rank"
"""What a finding is of that the mean over ranks does not show."""


@dataclass(frozen=True)
class Finding:
    """What came of one expectation."""

    function: str
    metric: str
    expectation: Expectation
    match: Match | None  # none without a model
    formula: str = ""  # the model with its coefficients
    adjusted_r2: float = float("nan")  # NaN for constants
    weight: float = 0.0  # share of the hypotheses that give the same verdict about the deviation limit
    settings: int = 0  # configurations measured
    status: Status = "ok"
    reason: str = ""  # why there is no verdict
    upper: bool = False  # whether slower growth than the limit allows is accepted
    widened: bool = False  # the best term was the upper boundary of the generated space, which was widened
    costs: tuple[Cost, ...] = ()  # what the deviation costs at larger scales
    doubled: Cost | None = None  # where the function takes twice the expected value, if that is known
    ranks: str = ""  # of which ranks the values are: empty as the study or the metric reduces them, or :data:`BUSIEST`
    litmus: str = ""  # what the reference implementation says of a deviation

    @property
    def violated(self) -> bool:
        """Whether the expectation is violated, on sufficient evidence."""
        return self.verdict == "none"

    @property
    def verdict(self) -> str:
        """``total``, ``approximate``, ``none``, ``insufficient``, or ``slower``: outside of the limit and accepted."""
        if self.status != "ok" or self.match is None:
            return "insufficient"
        return "slower" if self.match.rank == "none" and not outside(self.match, self.upper) else self.match.rank


def outside(result: Match, upper: bool) -> bool:
    """Whether a match is outside of the limit; of an upper bound only what grows faster is."""
    return result.rank == "none" and (result.exceeds or not upper)


def judge(function: str, metric: str, expectation: Expectation, model: Model, study: Study) -> Finding:
    """Hold a model against its expectation."""
    known = Finding(
        function, metric, expectation, None, settings=len(model.present), upper=study.upper, status="insufficient"
    )
    if model.empty:
        return replace(known, reason=weakness(model, study))
    limit = limit_of(expectation.growth, expectation.limit)
    matches = [(each.weight, _match(each, expectation.growth, limit)) for each in model.expecting(expectation.growth)]
    result = matches[0][1]
    violated = outside(result, study.upper)
    agreeing = sum(weight for weight, other in matches if outside(other, study.upper) == violated)
    known = replace(
        known,
        match=result,
        formula=model.formula,
        adjusted_r2=model.adjusted_r2,
        weight=agreeing,
        widened=model.widened,
        status="ok",
    )
    reason = weakness(model, study)
    if not reason and agreeing < AGREEMENT:
        reason = _disagreement(model, matches, study)
    return replace(known, status="insufficient", reason=reason) if reason else known


def as_well(finding: Finding, model: Model, expected: float) -> Finding:
    """The finding without its verdict where it violates an expectation that, as a function fitted to the measurements,
    misses values that are left out by `expected`, of which the model is off by more than :data:`HALF`. Of what is
    nothing at some values both errors are not relative to the same."""
    if not finding.violated or model.out_of_sample < HALF * expected or (model.values <= 0).any():
        return finding
    reason = "what is expected predicts values that are left out about as well; a larger configuration would decide"
    return replace(finding, status="insufficient", reason=reason)


def _match(explanation: Explanation, expected: Growth, limit: Growth) -> Match:
    """The match of an explanation with an expectation: a total one where what deviates may as well be zero."""
    result = match(explanation.relevant, expected, limit)
    certain = match(explanation.certain, expected, limit)
    return certain if result.rank == "none" and certain.rank == "total" else result


def weakness(model: Model, study: Study) -> str:
    """Why a model gives no verdict, whatever is expected; empty where it does."""
    if model.empty:
        return f"no function can be fitted to {counted(len(model.present), 'configuration')}"
    for name, count in model.settings.items():
        if count < study.least_settings:
            return f"{counted(count, 'value')} of {name} measured, a verdict needs {study.least_settings}"
    if model.growth.orders and model.adjusted_r2 < study.least_r2:
        return f"the model explains little, its adjusted R2 is below {study.least_r2:g}"
    if model.fitted.noisy[model.row] and model.growth.orders:
        return "repetitions of a configuration differ more than configurations do: measure more of them"
    return ""


def _disagreement(model: Model, matches: Sequence[tuple[float, Match]], study: Study) -> str:
    result = matches[0][1]
    violated = outside(result, study.upper)
    rivals = [each for each in matches if outside(each[1], study.upper) != violated]
    ours, theirs = (each.found.renamed(study.short) for each in (result, max(rivals, key=lambda each: each[0])[1]))
    where = ("outside", "inside") if violated else ("inside", "outside")
    more = "more repetitions" if model.fitted.noisy[model.row] else "a larger configuration"
    sentence = f"{ours} {where[0]} and {theirs} {where[1]} the limit"
    return f"{sentence} explain the measurements about as well; {more} would decide"
