"""The model of an application: the functions of all its kernels and metrics, in one file."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.costs.selection import stated
from ranksight.core.arrays import Array, Index
from ranksight.core.errors import ContractError, InputError
from ranksight.core.experiment import WHOLE
from ranksight.core.html import drawn
from ranksight.core.log import log
from ranksight.core.metrics import metric
from ranksight.core.units import counted
from ranksight.model.answers import Answers
from ranksight.model.application import whole
from ranksight.model.application.agreement import Agreement, operations_summed, remark
from ranksight.model.application.breakdown import Breakdown, Refined
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.application.doubts import with_doubts
from ranksight.model.application.equation_terms import EquationTerms
from ranksight.model.application.program_time import program_time
from ranksight.model.energy.stored import Energy
from ranksight.model.evidence import evidence_of_series, evidence_of_sum
from ranksight.model.fitting.columns import Columns
from ranksight.model.fitting.fitted import Fitted
from ranksight.model.messages.table import MessageTable
from ranksight.model.modelfile import misread, parts, read, write
from ranksight.model.prediction import Prediction
from ranksight.model.questions import combinations, known, whole_ranks
from ranksight.model.selecting import selected
from ranksight.model.series.folding import Selection
from ranksight.model.structure.coordinates import Coordinates
from ranksight.model.structure.functions import ARRAYS, Functions, join, rows_of
from ranksight.model.structure.wholeunits import Staircase, WholeUnits
from ranksight.model.uncertainty.forecast import NO_DATA, Forecast

TIMED = ("time", "cycles")
"""Metrics that a contradiction between counters spoils."""
LEVEL = 0.9
"""Level of intervals where none is asked for."""
REMEMBERED = 3
"""Answers that a model remembers."""
OFFERED = ("application", "diagnose", "load", "messages", "parameters", "placed", "plot", "predict", "provenance",
           "save", "table", "training", "with_algorithms", "with_units")  # fmt: skip
"""What of a model is for users; its documentation and completion list this."""

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.analysis.diagnosis.diagnosing import Diagnosis
    from ranksight.comm.topology.shape import Topology
    from ranksight.core.experiment import Experiment


@dataclass(frozen=True)
class Model:
    """Functions of every kernel and metric of one application.

    Attributes
    ----------
    fitted : Fitted
        Functions of the kernels' metrics, one a series.
    training : (n, m) float64
        Configurations that were measured.
    shares : (s,)
        Share of each series in the sum of its metric over kernels, at the runs on most cores; of timers that
        contain each other, in the program's own.
    correlation : mapping of str to float
        For each metric the common correlation of its kernels' noise.
    provenance : mapping of str to str
        For each metric where its numbers come from.
    extras : mapping of str to JSON-able data
        What further stages keep in the model's file, by name.

    Examples
    --------
    >>> model = rs.load("heat.model.json")
    >>> model.parameters, model.training.shape
    (('ranks', 'size'), (12, 2))
    """

    application: str
    parameters: tuple[str, ...]
    fitted: Fitted
    training: Array
    shares: Array
    correlation: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    extras: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        over = ", ".join(self.parameters)
        return f"<Model {self.application}: {counted(len(self.fitted), 'function')} of {over}; .table() shows them>"

    def __dir__(self) -> list[str]:
        """What people ask a model, for completion; the other parts serve this package."""
        return list(OFFERED)

    def _repr_html_(self) -> str:
        from ranksight.model.function_table import html

        return html(self)

    def table(self) -> pd.DataFrame:
        """The functions, one row each; see :func:`ranksight.model.function_table.function_table`.

        >>> rs.load("heat.model.json").table()[["kernel", "metric", "formula"]].head(1)
             kernel metric         formula
        0  exchange   time  1e-07 * size^2
        """
        from ranksight.model.function_table import function_table

        return function_table(self)

    def plot(
        self,
        along: str | None = None,
        to: float | None = None,
        at: Mapping[str, float] | None = None,
        experiment: Experiment | None = None,
        ax: Any = None,
    ) -> Any:
        """Draw the program's predicted time along a parameter, with its interval; the matplotlib axes are returned.

        Raises InputError when a parameter is unknown, a value is not above 0, or the experiment varies other
        parameters.

        Parameters
        ----------
        along : str, optional
            The parameter: ranks where they varied, otherwise the first that did.
        to : float, optional
            Largest value; when not given the farthest that the data support, up to 16 times the largest measured one.
        at : mapping of str to float, optional
            Values of the other parameters; each one's largest measured value when not given.
        experiment : Experiment, optional
            Whose measured times are drawn as points.
        ax : matplotlib axes, optional
            Drawn into; otherwise a new figure of pyplot.

        Examples
        --------
        >>> rs.load("heat.model.json").plot(to=64, at={"size": 48}).get_xlabel()
        'ranks'
        """
        return drawn("plot_model", self, along=along, to=to, at=at, experiment=experiment, ax=ax)

    # ---- asking -----------------------------------------------------------------------------------------------------

    def predict(
        self,
        at: Mapping[str, float | Sequence[float]] | None = None,
        /,
        *,
        level: float = 0.9,
        kernels: str | Sequence[str] | None = None,
        metrics: str | Sequence[str] | None = None,
        **values: float | Sequence[float],
    ) -> Prediction:
        """Predict at all combinations of the values given, such as ``predict(ranks=[1024, 2048], size=256)``.

        Raises InputError when a parameter, kernel or metric is unknown or a value is missing.

        Parameters
        ----------
        at : mapping of str to float or sequence of float, optional
            Values of parameters as in `values`; for names held in a variable, or that are those of other arguments.
        level : float
            Probability that the intervals hold.
        kernels, metrics : str or sequence of str, optional
            All when not given; the whole program is predicted in any case.
        **values : float or sequence of float
            A value or several for every parameter of the model; one that took a single value in the measurements may
            be left out.

        Examples
        --------
        >>> rs.load("heat.model.json").predict(ranks=[64, 256], size=48, metrics="time")
        <Prediction heat: 6 predictions at ranks, size; .table() shows them>
        """
        asked = self.combinations({**(at or {}), **values})
        return self.predict_at(asked, level=level, kernels=kernels, metrics=metrics)

    def diagnose(self, *, level: float = 0.9, **values: float | Sequence[float]) -> Diagnosis:
        """Return what bounds each kernel at all combinations of the values given, how it scales and what would help.

        ``model.diagnose(ranks=[64, 1024], size=24).verdicts()``; parameters are given as to :meth:`predict`. See
        :class:`ranksight.analysis.diagnosis.diagnosing.Diagnosis` for its tables. Raises InputError when a parameter is
        unknown, a value is missing or no number of ranks, or no kernel has a time.

        Examples
        --------
        >>> found = rs.load("heat.model.json").diagnose(ranks=64, size=48)
        >>> found.verdicts()[["kernel", "ranks", "share"]].round(2)
             kernel  ranks  share
        0     solve   64.0   0.94
        1  exchange   64.0   0.06
        """
        from ranksight.analysis.diagnosis.diagnosing import diagnose

        return diagnose(self, self.combinations(values), level=level)

    def combinations(self, values: Mapping[str, float | Sequence[float]]) -> Array:
        """All combinations of the parameters' values, (k, m); see :func:`ranksight.model.questions.combinations`.

        Where parameters are computed from those of the runs, values of either are taken.
        """
        if self.coordinates is not None:
            return self.coordinates.combinations(self.training, values)
        return combinations(self.parameters, self.training, values)

    @cached_property
    def coordinates(self) -> Coordinates | None:
        """How the parameters are computed from those of the runs; None where they are those."""
        content = self.extras.get("coordinates")
        if content is None:
            return None
        coordinates = Coordinates.from_dict(content)
        if coordinates.parameters != self.parameters:
            raise InputError("'coordinates' does not fit the functions", "fit the model again")
        return coordinates

    def view(self, experiment: Experiment) -> Experiment:
        """An experiment of the same command over the parameters of the model; see :meth:`Coordinates.view`.

        Where the model's times are cycles over a clock, so are those of an experiment that measured none; kernels that
        are one in the model are one there.
        """
        experiment = experiment if self.coordinates is None else self.coordinates.view(experiment)
        content = self.extras.get("clock")
        if content is not None:
            from ranksight.model.resource.cycle_times import Clock, Timed, untimed

            experiment = Timed(experiment, Clock.from_dict(content)) if untimed(experiment) else experiment
        return self.selection.view(experiment)

    @cached_property
    def selection(self) -> Selection:
        """Which of the experiment's kernels are one in the model."""
        return Selection.from_dict(self.extras.get("folded", {}))

    def along_ties(self, points: Array) -> Array:
        """The points (k, m) with parameters that varied with others only where those have them."""
        from ranksight.model.fitting.ties import along_ties

        return along_ties(points, self.parameters, self.fitted.ties)

    def predict_at(
        self,
        points: Array,
        *,
        level: float = 0.9,
        kernels: str | Sequence[str] | None = None,
        metrics: str | Sequence[str] | None = None,
        times: Array | None = None,
    ) -> Prediction:
        """Predict at `points` (k, m); see :meth:`predict`.

        `times` (k,): seconds that runs are known to take; energy and power are those of such runs.
        """
        kernels, metrics = ((each,) if isinstance(each, str) else each for each in (kernels, metrics))
        metered = self.metered
        wanted = (*dict.fromkeys(self.fitted.metrics), *metered) if metrics is None else tuple(metrics)
        if self.energy is not None and not metered and "energy" in {name.partition("_")[0] for name in wanted}:
            raise InputError(f"energy is not predicted: {'; '.join(self.energy.notes)}", "measure these runs again")
        known("metric", wanted, (*self.fitted.metrics, *metered))
        if self.energy is not None:
            wanted = self.energy.wanted(wanted)
        if kernels is not None:
            total = self.extras.get("total")  # the whole program by the name that its timer had
            kernels = [WHOLE if name == total and name not in self.fitted.kernels else name for name in kernels]
            self.selection.check(kernels)
            known("kernel", [name for name in kernels if name != WHOLE], self.fitted.kernels)
        self._check(points)
        refined = self._refined(points, level)
        names = np.array(self.fitted.metrics, dtype=object)
        every = np.array(self.fitted.kernels, dtype=object)
        broken = None
        if "time" in wanted and (kernels is None or WHOLE in kernels):
            rho = self.correlation.get("time", whole.NOISE)
            broken = program_time(self.equation, refined, self.functions, points, self.shares, rho)
        asked = every != WHOLE if kernels is None else np.isin(every, [name for name in kernels if name != WHOLE])
        texts = evidence_of_series(self.fitted, self.provenance, refined)
        blocks = []
        for name in wanted:
            rows = np.flatnonzero(names == name)
            if name in metered:
                blocks += self._metered(name, points, level, times) if kernels is None or WHOLE in kernels else []
                continue
            total = self._total(name, rows, refined, broken) if kernels is None or WHOLE in kernels else None
            if total is not None:
                outside = name == "time" and broken is not None and broken.others is not None
                whole_text = evidence_of_sum(texts[rows], every[rows].tolist(), outside)
                blocks.append((name, np.array([None]), total, whole_text[None]))
            rows = rows[asked[rows]]
            blocks.append((name, every[rows], rows_of(refined.said, rows), texts[rows]))
        metrics_of = [np.full(len(kernels_of), name, dtype=object) for name, kernels_of, _, _ in blocks]
        answers = Answers(
            self.parameters,
            points,
            np.concatenate([block[1] for block in blocks]),
            np.concatenate(metrics_of),
            join([block[2] for block in blocks]),
            np.concatenate([block[3] for block in blocks]),
        )
        parts = {} if broken is None else broken.parts
        exchanged = None if broken is None else broken.exchanged
        sent = [] if exchanged is None or self.equation.network is None else exchanged.table(self.parameters, points)
        terms = None
        if "time" in wanted:
            only = None if kernels is None else tuple(kernels)
            others = None if broken is None else broken.others
            terms = EquationTerms(self.parameters, points, refined.terms, others, only)
        wall = {} if broken is None else dict(zip(broken.kernels, broken.by_kernel, strict=True))
        return Prediction(self.application, self.parameters, answers, self.notes(points), parts, sent, terms, wall)

    @cached_property
    def energy(self) -> Energy | None:
        """The laws of power, where the runs metered energy."""
        content = self.extras.get("energy")
        return None if content is None else Energy.from_dict(content)

    @property
    def metered(self) -> tuple[str, ...]:
        """Metrics that the laws of power answer."""
        return () if self.energy is None else self.energy.metrics

    def _metered(
        self, name: str, points: Array, level: float, times: Array | None
    ) -> list[tuple[str, Any, Forecast, Any]]:
        """The block of answers of a metric of energy or power."""
        from ranksight.model.energy.predicted import evidence, forecasts

        assert self.energy is not None
        texts = np.full((1, len(points)), evidence(self.energy, name), dtype=object)
        return [(name, np.array([None]), forecasts(self, points, [name], level, times)[name], texts)]

    def _check(self, points: Array) -> None:
        """Raise InputError where points ask for what no program runs on."""
        whole_ranks(self.parameters, points, "ranks are asked at {}", "give whole numbers of ranks, 1 or more")

    def remarks(self, points: Array) -> tuple[str, ...]:
        """What is to be said of totals at `points` that differ from the sums of their parts."""
        return self._refined(points, LEVEL).remarks

    def notes(self, points: Array) -> tuple[str, ...]:
        """What is to be known of the configurations asked for: ranks that do not divide the work, caches outgrown."""
        from ranksight.model.notes import notes

        return notes(self, points)

    def forecast(self, points: Array, level: float = 0.9) -> Forecast:
        """Forecast every series at `points` (k, m), kernels' times by the resource equation where counters carry it."""
        return self._refined(points, level).said

    def _refined(self, points: Array, level: float) -> Refined:
        """What is predicted at `points`; verbs ask the same in several ways, and the last answers are remembered."""
        asked = (points.tobytes(), points.shape, level)
        if asked not in self._answers:
            while len(self._answers) >= REMEMBERED:
                del self._answers[next(iter(self._answers))]
            self._answers[asked] = self._predicted(points, level)
        refined = self._answers[asked]
        arrays = {name: getattr(refined.said, name).copy() for name in ARRAYS}  # the caller may write to them
        return replace(refined, said=replace(refined.said, **arrays))

    @cached_property
    def _answers(self) -> dict[tuple[bytes, tuple[int, ...], float], Refined]:
        return {}

    def _predicted(self, points: Array, level: float) -> Refined:
        refined = self._by_equations(points, level)
        forecast, rows, broken = refined.said, self.functions.rows, self.contradictions
        status, reason = forecast.status.copy(), forecast.reason.astype(object)
        for (kernel, name), row in rows.items():
            if kernel in broken and name in TIMED:
                status[row], reason[row] = NO_DATA, str(broken[kernel])
        timed = np.array([row for (_, name), row in rows.items() if name == "time"], dtype=np.intp)
        # No program takes no time at all.
        nothing = np.ix_(timed, (forecast.value[timed] == 0).all(axis=0) & bool(len(timed)))
        status[nothing] = NO_DATA
        reason[nothing] = "every time is zero: the clock was too coarse, or another metric is the time"
        if (machine := self.equation.machine) is not None:
            machine.refuse(status, reason, rows)
        forecast, sent = replace(forecast, status=status, reason=reason), self.equation.communication
        sums = {} if sent is None else operations_summed(sent, points, level)
        forecast, disagreeing = self.agreement.agreed(forecast, rows, self.shares, sums, self._stated_by_operations())
        if sent is not None and sent.messages is not None and "ranks" in self.parameters:
            forecast = with_doubts(forecast, points, self.functions, sent.messages, self.training)
        forecast = self.agreement.with_programs(forecast, rows, self.shares, sums)
        return replace(refined, said=forecast, sums=sums, remarks=remark(disagreeing, points, self.parameters))

    def _stated_by_operations(self) -> set[str]:
        """Kernels of whose operations, not of themselves, the user states how they go on."""
        sent, stated = self.equation.communication, self.functions.stated
        if sent is None or stated is None:
            return set()
        members: dict[str, list[str]] = {}
        for kernel, name in zip(sent.callers, sent.names, strict=True):
            members.setdefault(kernel, []).append(name)
        return {kernel for kernel, names in members.items() if stated.by_operations(kernel, names)}

    @cached_property
    def agreement(self) -> Agreement:
        """Which totals are sums of parts that have functions of their own."""
        return Agreement.from_dict(self.extras.get("agreement", {}))

    @property
    def contradictions(self) -> Mapping[str, str]:
        """Kernels whose counters contradict each other, and how."""
        content = self.extras.get("contradictions", {})
        if not isinstance(content, dict):
            raise InputError("'contradictions' is damaged", "fit the model again")
        return content

    def _by_equations(self, points: Array, level: float) -> Refined:
        staircase = self.staircase
        if staircase is None:
            return self.equation.refine(self.functions.predict(points, level), self.functions, points)
        share = staircase.share(self.functions, points, level)
        forecast = staircase.predict(self.functions.predict(points, level), self.functions, share, level)
        return self.equation.refine(forecast, self.functions, points, share)

    def breakdown(self, points: Array, level: float = 0.9) -> Breakdown:
        """The application's time at `points` (k, m) and what it is made of."""
        return self.ask(points, level)[1]

    def ask(self, points: Array, level: float = 0.9) -> tuple[Forecast, Breakdown]:
        """Both :meth:`forecast` and :meth:`breakdown` at `points` (k, m), for the price of one."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        refined, rho = self._refined(points, level), self.correlation.get("time", whole.NOISE)
        return refined.said, program_time(self.equation, refined, self.functions, points, self.shares, rho)

    def placed(
        self,
        placement: str | None = None,
        ranks_per_node: int | None = None,
        distribution: str | None = None,
        topology: Topology | None = None,
    ) -> Model:
        """The same model with ranks placed in another way than they were measured.

        Raises InputError when the model knows no domains, from neither a platform nor memory traffic, or no network.

        Parameters
        ----------
        placement : str, optional
            ``compact`` or ``scattered`` (:class:`ranksight.model.series.domains.Domains`).
        distribution : str, optional
            ``block`` or ``cyclic``: how ranks are dealt out to nodes (:class:`ranksight.comm.costs.fabric.Fabric`).
        topology : Topology, optional
            Shape of the network between nodes; :func:`ranksight.comm.topology.described.load` reads one.
        """
        if placement is None and ranks_per_node is None and distribution is None and topology is None:
            return self
        equation = self.equation.placed(placement, ranks_per_node, distribution, topology)
        extras = {**self.extras, "application": equation.to_dict()}
        if self.energy is not None:
            extras["energy"] = self.energy.placed(placement, ranks_per_node).to_dict()
        return replace(self, extras=extras)

    def with_algorithms(self, algorithms: Mapping[str, str]) -> Model:
        """The same model where collectives are done by stated algorithms, in the runs and in what is predicted.

        Raises InputError when an operation or algorithm is unknown, it lists the known ones; or when the model has no
        network.

        Parameters
        ----------
        algorithms : mapping of str to str
            By operation, such as ``{"allreduce": "ring"}``; :func:`ranksight.comm.costs.selection.algorithms_of` names
            those of an operation.
        """
        if not algorithms:
            return self
        chosen = stated(algorithms, "algorithm")
        equation = self.equation
        if equation.communication is None or equation.network is None:
            raise InputError(
                "the model has no network: algorithms of collectives change nothing",
                "fit it with --platform NAME from runs that traced messages",
            )
        network = equation.network.stating(chosen)
        equation = replace(equation, network=network, communication=equation.communication.on(network))
        return replace(self, extras={**self.extras, "application": equation.to_dict()})

    def messages(self, *, level: float = 0.9, **values: float | Sequence[float]) -> tuple[MessageTable, ...]:
        """Who sends what to whom, at all combinations of the values given, such as ``messages(ranks=4096)``.

        Raises InputError as :meth:`predict`, and when the model was fitted to no traces of messages.

        Returns
        -------
        tuple of MessageTable
            One for each combination; see :meth:`~ranksight.model.messages.table.MessageTable.by_class`.
        """
        messages = None if self.equation.communication is None else self.equation.communication.messages
        if messages is None:
            raise InputError(
                "the model holds no messages",
                "trace two numbers of ranks or more with 'ranksight measure --collector pmpi' and fit again",
            )
        return tuple(messages.predict(point, level) for point in self.combinations(values))

    @cached_property
    def functions(self) -> Functions:
        """The functions with what is known of their structure."""
        return Functions.with_structures(self.fitted, self.extras.get("structures", {}))

    @cached_property
    def staircase(self) -> Staircase | None:
        """The whole units that the work comes in, where they were stated."""
        content = self.extras.get("units")
        return None if content is None else Staircase.from_dict(content).of(self.fitted)

    def with_units(self, text: str | None) -> Model:
        """The same model with work in whole units, such as ``elements=6*size^2``
        (:mod:`ranksight.model.structure.wholeunits`).

        The functions stay: where they were learned without the units, the ranks measured should divide them.
        """
        if text is None:
            return self
        units = WholeUnits.read(text, self.parameters)
        busiest = tuple(dict.fromkeys(name for name in self.fitted.metrics if metric(name).over_ranks == "max"))
        return replace(self, extras={**self.extras, "units": Staircase(units, busiest, None).to_dict()})

    @cached_property
    def equation(self) -> Application:
        """The parts of the application's time; InputError where it names kernels that have no function of time."""
        content = self.extras.get("application")
        equation = Application() if content is None else Application.from_dict(content)
        named = {kernel for law in equation.shared for kernel in law.kernels}
        if equation.counted is not None:
            named.update(itertools.compress(equation.counted.kernels, np.isfinite(equation.counted.offset)))
        series = self.fitted.keys
        timed = {kernel for kernel, name in series if name == "time"}
        if unknown := sorted(named - timed):
            raise InputError(f"'application' names the kernel {unknown[0]!r}, which has no time", "fit the model again")
        return equation

    def programs(self, points: Array, metrics: Sequence[str], level: float = 0.9) -> dict[str, Forecast]:
        """The whole program's values at `points` (k, m), one row for each metric that has any."""
        self._check(points)
        refined, names = self._refined(points, level), np.array(self.fitted.metrics, dtype=object)
        broken = self.breakdown(points, level) if "time" in metrics else None
        totals = {name: self._total(name, np.flatnonzero(names == name), refined, broken) for name in metrics}
        return {name: total for name, total in totals.items() if total is not None}

    def _total(self, name: str, rows: Index, refined: Refined, broken: Breakdown | None) -> Forecast | None:
        """The whole program's value at all points, one row; None where the metric has none."""
        if name == "time" and broken is not None and len(rows):
            return self.whole_time(refined.said, broken)
        if name in self.agreement.programs:
            return self.agreement.total(name, refined.said, self.functions.rows, self.shares, refined.sums)
        direct = [int(row) for row in rows if self.fitted.kernels[row] == WHOLE]
        if direct:
            return rows_of(refined.said, np.array(direct[:1]))
        if not metric(name).additive or not len(rows):
            return None
        rho = self.correlation.get(name, whole.NOISE)
        return whole.judged(whole.add(refined.said, rows, self.shares[rows], rho))

    def whole_time(self, forecast: Forecast, broken: Breakdown) -> Forecast:
        """The whole program's time of what :meth:`ask` gave, one row.

        The sum of all parts where T_others is known or the program was not measured as a whole; else what was fitted
        to its time.
        """
        row = self.functions.rows.get((WHOLE, "time"))
        if row is None or self.equation.others is not None:
            return broken.total
        return rows_of(forecast, np.array([row]))

    # ---- the file ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model to one file; see :func:`ranksight.model.modelfile.write`.

        >>> rs.fit("heat.exp").save("new.model.json")
        >>> rs.load("new.model.json").parameters
        ('ranks', 'size')
        """
        write(
            Path(path),
            {
                "application": self.application,
                "parameters": list(self.parameters),
                "training": self.training,
                "provenance": dict(self.provenance),
                "correlation": {name: [rho, 1.0] for name, rho in self.correlation.items()},
                "shares": self.shares,
                "fitted": Columns.of(self.fitted),
                "extras": dict(self.extras),
            },
            force,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str], kernels: Collection[str] | None = None) -> Model:
        """Read a model from its file; see :func:`ranksight.model.modelfile.read`.

        Raises InputError when the file is not a model, is damaged, or was written by an older or a newer version.

        Parameters
        ----------
        kernels : collection of str, optional
            The kernels that will be asked for: where they do not depend on others, few more are read
            (:mod:`ranksight.model.selecting`). A model that is read so knows nothing of the whole program.
        """
        content: Mapping[str, Any] = read(Path(path))
        try:
            model = cls(**parts(content if kernels is None else selected(content, kernels)))
            # Read here, where the file is known.
            _ = model.coordinates, model.functions, model.staircase, model.equation, model.energy, model.agreement
        except ContractError:  # of a package that is installed, not of the file
            raise
        except InputError as error:
            raise misread(Path(path), content, error) from error
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            damage = InputError(f"an entry is of another kind than it should be: {error}", "fit the model again")
            raise misread(Path(path), content, damage) from error
        log("read model %s: %d functions of %d configurations", path, len(model.fitted), len(model.training))
        return model


def load(path: str | os.PathLike[str], kernels: Collection[str] | None = None) -> Model:
    """The model in the file `path`, written by 'ranksight fit' or :meth:`Model.save`; see :meth:`Model.load`.

    Raises InputError when the file is not a model, is damaged, or was written by a newer version.

    Parameters
    ----------
    path : path
    kernels : collection of str, optional
        Read the functions of these alone, where that is possible; all when not given.

    Examples
    --------
    >>> rs.load("heat.model.json")
    <Model heat: 4 functions of ranks, size; .table() shows them>
    """
    return Model.load(path, kernels)
