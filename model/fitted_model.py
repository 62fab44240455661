"""The model of an application: the functions of all its kernels and metrics, in one file."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.comm.costs.selection import stated
from ranksight.core.arrays import Array
from ranksight.core.errors import InputError
from ranksight.core.html import drawn
from ranksight.core.log import log
from ranksight.core.records import dataclass
from ranksight.core.units import counted
from ranksight.model.fitting.abstaining import along_ties, follower
from ranksight.model.fitting.printed import PrintedTime
from ranksight.model.function_table import function_table, html, shown_shares
from ranksight.model.largest import largest_run, next_larger
from ranksight.model.modelfile import read, understanding, write
from ranksight.model.notes import notes
from ranksight.model.predicting import Learned
from ranksight.model.printing import by_laws
from ranksight.model.questions import combinations
from ranksight.model.resource.clock import Timed, untimed
from ranksight.model.selecting import selected
from ranksight.model.structure.wholeunits import Staircase

OFFERED = ("application", "diagnose", "load", "messages", "parameters", "placed", "plot", "predict", "provenance",
           "save", "table", "training", "with_algorithms", "with_units")  # fmt: skip
"""What of a model is for users; its documentation and completion list this."""

if TYPE_CHECKING:
    import pandas as pd

    from ranksight.analysis.diagnosis.diagnosing import Diagnosis
    from ranksight.comm.topology.shape import Topology
    from ranksight.core.experiment import Experiment
    from ranksight.model.messages.table import MessageTable
    from ranksight.model.prediction import Prediction


@dataclass(frozen=True)
class Model(Learned):
    """Functions of every kernel and metric of one application.

    Attributes
    ----------
    application : str
        Name of the program.
    parameters : tuple of str
        The parameters that are asked for.
    training : (n, m) float64
        Configurations that were measured.
    provenance : mapping of str to str
        For each metric where its numbers come from.

    Others serve this package: see :class:`ranksight.model.predicting.Learned`.

    Examples
    --------
    >>> model = rs.load("heat.model.json")
    >>> model.parameters, model.training.shape
    (('ranks', 'size'), (12, 2))
    """

    def __repr__(self) -> str:
        over = ", ".join(self.parameters)
        return f"<Model {self.application}: {counted(len(self.fitted), 'function')} of {over}; .table() shows them>"

    def __dir__(self) -> list[str]:
        """What people ask a model, for completion; the other parts serve this package."""
        return list(OFFERED)

    def _repr_html_(self) -> str:
        return html(self, self.formula, self.shown_shares)

    @cached_property
    def printed(self) -> Mapping[int, PrintedTime]:
        """What is printed of times, by row (:func:`ranksight.model.printing.by_laws`)."""
        return by_laws(self)

    @cached_property
    def shown_shares(self) -> Array:
        """Share (s,) of each series in its metric, as all outputs show it, see
        :func:`ranksight.model.function_table.shown_shares`."""
        return shown_shares(self, self.training[self.largest])

    @property
    def next_larger(self) -> Array:
        """The configuration that is asked for next where none is named, (m,)."""
        return next_larger(self.parameters, self.training, self.along_ties)

    @property
    def largest(self) -> int:
        """Which of the runs is the largest (:func:`ranksight.model.largest.largest_run`)."""
        return largest_run(self.parameters, self.training)

    def formula(self, row: int) -> str:
        """The function of a series as people read it: of a time that which is nearest to what is predicted."""
        return self.printed.get(row, ("",))[0] or self.functions.formula(row)

    def table(self) -> pd.DataFrame:
        """The functions, one row each; see :func:`ranksight.model.function_table.function_table`.

        >>> rs.load("heat.model.json").table()[["kernel", "metric", "formula"]].head(1)
             kernel metric         formula
        0  exchange   time  1e-07 * size^2
        """
        return function_table(self, self.formula, self.shown_shares)

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
            A value or several for every parameter of the model; one that took a single value in the measurements, or
            followed others in all of them, may be left out.

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

        return diagnose(self, self.combinations(values), level=level, of_runs=self.of_runs(values))

    def combinations(self, values: Mapping[str, float | Sequence[float]]) -> Array:
        """All combinations of the parameters' values, (k, m); see :func:`ranksight.model.questions.combinations`.

        Where parameters are computed from those of the runs, values of either are taken. One that followed others in
        all runs, as a size follows the ranks in weak scaling, follows them where it is not given.
        """
        of_runs = self.coordinates.of_runs(values)
        if of_runs is not None:
            return self.coordinates.points(of_runs)
        followers = {name: tie for name, tie in self.followers.items() if name not in values}
        points = combinations(self.parameters, self.training, {**dict.fromkeys(followers, 1.0), **values})
        return along_ties(points, self.parameters, np.array(list(followers.values())))

    @property
    def followers(self) -> dict[str, Array]:
        """The parameters that varied with others only, with the tie (1 + m,) of each to these."""
        return {self.parameters[follower(tie, self.parameters)]: tie for tie in self.fitted.ties}

    def of_runs(self, values: Mapping[str, float | Sequence[float]]) -> Array | None:
        """The same in the parameters of the runs; None where these are the model's, or computed ones are asked for."""
        return self.coordinates.of_runs(values)

    def view(self, experiment: Experiment) -> Experiment:
        """An experiment of the same command over the parameters of the model; see :meth:`Coordinates.view`.

        Where the model's times are cycles over a clock, so are those of an experiment that measured none; kernels that
        are one in the model are one there.
        """
        experiment = self.coordinates.view(experiment)
        if self.clock and untimed(experiment):
            experiment = Timed.of(experiment, self.clock)
        return self.selection.view(experiment)

    def along_ties(self, points: Array) -> Array:
        """The points (k, m) with parameters that varied with others only where those have them."""
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
        from ranksight.model.prediction import answer

        kernels, metrics = ((each,) if isinstance(each, str) else each for each in (kernels, metrics))
        return answer(self, points, level, kernels, metrics, times)

    def notes(self, points: Array) -> tuple[str, ...]:
        """What is to be known of the configurations asked for: ranks that do not divide the work, caches outgrown."""
        return notes(self, points)

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
        return replace(self, equation=equation, energy=self.energy.placed(placement, ranks_per_node))

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
        return replace(self, equation=self.equation.with_algorithms(stated(algorithms, "algorithm")))

    def messages(self, *, level: float = 0.9, **values: float | Sequence[float]) -> tuple[MessageTable, ...]:
        """Who sends what to whom, at all combinations of the values given, such as ``messages(ranks=4096)``.

        Raises InputError as :meth:`predict`, and when the model was fitted to no traces of messages.

        Returns
        -------
        tuple of MessageTable
            One for each combination; see :meth:`~ranksight.model.messages.table.MessageTable.by_class`.
        """
        messages = self.equation.communication.messages
        if not messages:
            raise InputError(
                "the model holds no messages",
                "trace two numbers of ranks or more with 'ranksight measure --collector pmpi' and fit again",
            )
        return tuple(messages.predict(point).at(level) for point in self.combinations(values))

    def with_units(self, text: str | None) -> Model:
        """The same model with work in whole units, such as ``elements=6*size^2``
        (:mod:`ranksight.model.structure.wholeunits`).

        The functions stay: where they were learned without the units, the ranks measured should divide them.
        """
        if text is None:
            return self
        return replace(self, staircase=Staircase.stated(text, self.fitted))

    # ---- the file ---------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the model to one file; see :func:`ranksight.model.modelfile.write`.

        >>> rs.fit("heat.exp").save("new.model.json")
        >>> rs.load("new.model.json").parameters
        ('ranks', 'size')
        """
        write(Path(path), self.present(), force)

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
        with understanding(Path(path), content):
            model = cls.from_dict(content if kernels is None else selected(content, kernels))
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
