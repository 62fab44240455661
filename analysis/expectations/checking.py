"""The check: expectations, rules, litmus tests and the status quo held against an experiment.

A litmus test separates the architecture from the implementation. The reference is an algorithm of known behaviour,
written anew and measured with the library's functions. Where it deviates from its own expectation as well, the machine,
the network or the measurement is suspected; otherwise the implementation (Shudler et al. 2015, sections 2.2 and 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from ranksight.analysis.expectations.baseline import status_quo, status_quo_rulers
from ranksight.analysis.expectations.deviation import costs, doubled, fit_expected, forecasts, usual_targets
from ranksight.analysis.expectations.document import Expectation, Study, nearest
from ranksight.analysis.expectations.judging import BUSIEST, Finding, as_well, judge
from ranksight.analysis.expectations.measured import check_functions, measured, resolve, uneven_metrics
from ranksight.analysis.expectations.models import Key, Model, fit_models
from ranksight.analysis.expectations.rules import RuleFinding, check_rule
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.metrics import metric
from ranksight.core.records import dataclass
from ranksight.model.search.growth import Growth
from ranksight.model.series.reducing import Series
from ranksight.model.spaces.rulers import MPI, UNIT, Ruler


@dataclass(frozen=True)
class Result:
    """What a check found."""

    application: str
    parameters: tuple[str, ...]
    points: Array  # (n, m): configurations measured
    targets: Array  # (k, m): configurations at which costs are computed
    findings: tuple[Finding, ...]
    rules: tuple[RuleFinding, ...]
    short: Mapping[str, str] = field(default_factory=dict)  # parameter to the short name that its study uses

    @property
    def violated(self) -> bool:
        """Whether an expectation or a rule is violated, on sufficient evidence."""
        return any(each.violated for each in self.findings) or any(each.state == "violated" for each in self.rules)

    @property
    def insufficient(self) -> bool:
        """Whether some function got no verdict."""
        return any(each.status != "ok" for each in self.findings) or any(
            each.state == "insufficient" for each in self.rules
        )

    @property
    def exit_code(self) -> int:
        """3 on a violation, else 4 where evidence is insufficient, else 0."""
        return 3 if self.violated else 4 if self.insufficient else 0


def check(
    study: Study,
    experiment: Experiment,
    *,
    targets: Mapping[str, Sequence[float]] | None = None,
    baseline: Experiment | None = None,
    metrics: Sequence[str] | None = None,
) -> Result:
    """Check an experiment.

    Where the study does not say how ranks are reduced, the busiest rank is held against each expectation as well: a
    loop of one rank over all ranks is a constant in the mean.

    Raises InputError for unknown functions, metrics or parameters, and contradictions.

    `study`: see :mod:`ranksight.analysis.expectations.document`; with a baseline it may state nothing. `targets`:
    values of parameters at which costs are computed, all combinations; parameters not named stay at their largest.
    `baseline`: the status quo, for functions without an expectation. `metrics`: only these; with a baseline all time
    and requirement metrics when not given.
    """
    if "p" not in (*study.symbols, *experiment.parameters) and "ranks" in experiment.parameters:
        study = study.with_symbol("p", "ranks")
    wanted = _only(study, metrics)
    read = _metrics(wanted, experiment, baseline, metrics)
    result = _checked(wanted, experiment, read, targets, baseline)
    uneven = () if wanted.over_ranks is not None else uneven_metrics(experiment, read)
    if not uneven:
        return result
    busiest = replace(_only(wanted, uneven), over_ranks="max", rules=(), litmus={})
    other = _checked(busiest, experiment, list(uneven), targets, baseline)
    worse = {(each.function, each.metric): replace(each, ranks=BUSIEST) for each in other.findings if each.violated}
    findings = (each if each.violated else worse.get((each.function, each.metric), each) for each in result.findings)
    return replace(result, findings=tuple(findings))


def _checked(
    wanted: Study,
    experiment: Experiment,
    metrics: Sequence[str],
    targets: Mapping[str, Sequence[float]] | None,
    baseline: Experiment | None,
) -> Result:
    """What comes of a study with one way to reduce ranks."""
    series = measured(experiment, wanted, metrics)
    expected = resolve(wanted, series)
    missing: dict[Key, str] = {}
    of_baseline: dict[Key, Expectation] = {}
    if baseline is not None:
        at = _targets(series, targets, [each.growth for each in expected.values()])
        of_baseline, missing = status_quo(wanted, baseline, series, expected, at)
    check_functions(wanted.rules, series)
    expectations = expected | of_baseline
    at = _targets(series, targets, [each.growth for each in expectations.values()])
    models = _models(wanted, series, expected, of_baseline, at)
    findings = [judge(*key, each, models[key], wanted) for key, each in expectations.items()]
    findings = _priced(findings, models, series, at, wanted.how)
    for key, reason in missing.items():
        place = Expectation(key[0], key[1], Growth())
        findings.append(Finding(key[0], key[1], place, None, status="insufficient", reason=reason))
    order = series.rows
    if not wanted.expectations:
        findings.sort(key=lambda each: order[each.function, each.metric])
    rules = tuple(check_rule(rule, models, at, wanted) for rule in wanted.rules)
    return Result(
        experiment.application, series.parameters, series.points, at, with_litmus(findings, wanted), rules, wanted.short
    )


def _only(study: Study, metrics: Sequence[str] | None) -> Study:
    if metrics is None:
        return study
    return replace(
        study,
        expectations=tuple(each for each in study.expectations if each.metric in metrics),
        rules=tuple(each for each in study.rules if each.metric in metrics),
        litmus={name: value for name, value in study.litmus.items() if name in metrics},
    )


def _metrics(
    study: Study, experiment: Experiment, baseline: Experiment | None, metrics: Sequence[str] | None
) -> list[str]:
    """Metrics to read: those spoken of, and with a baseline those both experiments have."""
    spoken = [*(each.metric for each in study.expectations), *(each.metric for each in study.rules)]
    if metrics is not None:
        spoken += metrics if baseline is not None else []
    elif baseline is not None:
        shared = [name for name in experiment.metrics() if name in baseline.metrics()]
        spoken += [name for name in shared if metric(name).kind != "ratio"]
    if not spoken:
        raise InputError("nothing is expected of the metrics asked for", "name others with --metric")
    return list(dict.fromkeys(spoken))


def _models(
    study: Study,
    series: Series,
    expected: Mapping[Key, Expectation],
    of_baseline: Mapping[Key, Expectation],
    ahead: Array,
) -> dict[Key, Model]:
    """Models of all that is spoken of: in the space around the expectation, of the status quo, or of the paper."""
    names = series.parameters
    quo, stated = ({key: each.growth for key, each in group.items()} for group in (of_baseline, expected))
    models = fit_models(series, stated, study, ahead) | fit_models(series, quo, study, ahead, status_quo_rulers(names))
    spoken = [(name, rule.metric) for rule in study.rules for name in rule.inequality.functions]
    rest = dict.fromkeys((key for key in spoken if key not in models), Growth())
    few = MPI if len(names) == 1 else Ruler(MPI.powers[::2], (UNIT - UNIT, UNIT))
    return models | fit_models(series, rest, study, ahead, dict.fromkeys(names, few))


def _targets(series: Series, asked: Mapping[str, Sequence[float]] | None, growths: Sequence[Growth]) -> Array:
    if not asked:
        return usual_targets(series.points, growths, series.parameters)
    for name in asked:
        if name not in series.parameters:
            raise InputError(f"no parameter that varies is named {name!r}", f"they are: {', '.join(series.parameters)}")
    most = series.points.max(axis=0)
    axes = [asked.get(name, (float(most[at]),)) for at, name in enumerate(series.parameters)]
    grid = np.meshgrid(*axes, indexing="ij")
    return np.stack([axis.reshape(-1) for axis in grid], axis=1)


def _priced(
    findings: Sequence[Finding], models: Mapping[Key, Model], series: Series, targets: Array, how: str
) -> list[Finding]:
    """The findings with what deviations cost ahead."""
    growths = {(each.function, each.metric): each.expectation.growth for each in findings if each.match is not None}
    expected = fit_expected(series, growths, how)
    answers = forecasts((models[key] for key in growths), targets)
    priced = []
    for each in findings:
        key = (each.function, each.metric)
        if each.match is not None:
            model = models[key]
            divergence = each.match.divergence
            each = as_well(each, model, float(expected[key].press[0]))
            twice = doubled(model, expected[key], divergence) if each.status == "ok" else None
            prices = costs(model, expected[key], targets, answers[id(model.fitted)])
            each = replace(each, costs=prices, doubled=twice)
        priced.append(each)
    return priced


def with_litmus(findings: Sequence[Finding], study: Study) -> tuple[Finding, ...]:
    """Findings with what the reference of their metric says of those that deviate.

    Raises InputError when a reference has no expectation of its own.
    """
    by_key = {(each.function, each.metric): each for each in findings}
    for kind, name in study.litmus.items():
        if (name, kind) not in by_key:
            have = [function for function, other in by_key if other == kind]
            raise InputError(
                f"{study.source}: the litmus test {name!r} has no expectation in {kind}",
                nearest(name, have, f"write it under [expect.{kind}]"),
            )
    return tuple(
        replace(each, litmus=_sentence(each, by_key[study.litmus[each.metric], each.metric], study.short))
        if each.metric in study.litmus and each.function != study.litmus[each.metric]
        else each
        for each in findings
    )


def _sentence(finding: Finding, reference: Finding, short: Mapping[str, str]) -> str:
    if finding.match is None or finding.verdict in ("total", "insufficient") or not finding.match.faster:
        return ""
    name = reference.function
    if reference.match is None or reference.status != "ok":
        return f"undecided, {name} has no verdict of its own"
    delta = reference.match.divergence
    if reference.match.rank == "total" or not reference.match.faster:
        return f"the implementation, as {name} grows as expected here"
    if finding.match.divergence.within(delta):
        return f"the architecture, as {name} diverges by {delta.renamed(short)} too"
    return f"architecture and implementation, as {name} diverges by {delta.renamed(short)}, which is less"
