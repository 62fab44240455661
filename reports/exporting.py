"""Measurements and models in the formats of other tools: Extra-P, tables, xarray, Hatchet, OpenMetrics and LaTeX.

Every exporter writes text or bytes from one :class:`Exported`; :data:`FORMATS` lists them.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksight.core.arrays import Mask
from ranksight.core.errors import InputError, ToolError, nearest
from ranksight.core.experiment import WHOLE, Experiment
from ranksight.core.metrics import metric as described
from ranksight.core.names import call_path, cell, printable
from ranksight.core.records import dataclass
from ranksight.core.units import format_si, in_full, in_words
from ranksight.model.series.absences import with_absences
from ranksight.model.series.reducing import Series, series_from_experiment
from ranksight.reports.formula import latex
from ranksight.reports.functions import CLOSE, far, functions
from ranksight.reports.pasted import latex_text

if TYPE_CHECKING:
    import pandas as pd
    import xarray
    from hatchet import GraphFrame

    from ranksight.model.fitted_model import Model

UNNAMED = "(unnamed)"
UNITS = {"s": "seconds", "B": "bytes", "Hz": "hertz"}  # names of units in OpenMetrics


@dataclass(frozen=True)
class Exported:
    """What is exported: an experiment, or a model, never both.

    `metrics`: only these; all when empty.
    """

    experiment: Experiment | None
    model: Model | None
    metrics: tuple[str, ...] = ()

    def series(self) -> Series:
        """The measured values; InputError where a model is exported."""
        if self.experiment is None:
            raise InputError("a model holds no measurements", "export the experiment that it was fitted to")
        return series_from_experiment(self.experiment, self.metrics or None)

    def with_absences(self) -> Series:
        """The measured values, with 0 where a kernel did not run (:mod:`ranksight.model.series.absences`); errors as
        :meth:`series`."""
        return with_absences(self.series(), self.experiment.counted() if self.experiment else ())


def tidy(series: Series) -> pd.DataFrame:
    """Measured values, one row each.

    One column a parameter, then ``kernel``, ``metric``, ``repetition`` (from 0), ``value`` (reduced over ranks in the
    metric's own way) and ``unit`` (``s``, ``B``, ``Hz`` or empty for counts).
    """
    import pandas as pd

    row, at, repetition = np.nonzero(np.isfinite(series.values))
    names = np.array(series.metrics, dtype=object)[row]
    columns: dict[str, Any] = {name: series.points[at, place] for place, name in enumerate(series.parameters)}
    columns |= {
        "kernel": np.array(series.kernels, dtype=object)[row],
        "metric": names,
        "repetition": repetition,
        "value": series.values[row, at, repetition],
        "unit": [described(name).unit for name in names],
    }
    return pd.DataFrame(columns)


def extrap(what: Exported) -> str:
    """JSON Lines of Extra-P, one value a line; the whole program is the call path ``main``.

    Extra-P takes only functions that are measured at every configuration. A kernel that runs from some number of ranks
    on has 0 of an additive metric below, as in a fit (:mod:`ranksight.model.series.absences`); functions that lack
    more are left out. Raises InputError when no function is left.
    """
    series = what.with_absences()
    values, kept = series.values, _complete(series)
    if not kept.any():
        raise InputError("no metric was measured at every configuration, as Extra-P needs it", "name some by --metric")
    lines = []
    for row, at, repetition in np.argwhere(np.isfinite(values) & kept[:, None, None]).tolist():
        kernel = series.kernels[row]
        lines.append(
            json.dumps(
                {
                    "params": {n: float(x) for n, x in zip(series.parameters, series.points[at], strict=True)},
                    "callpath": "main" if kernel == WHOLE else kernel or UNNAMED,
                    "metric": series.metrics[row],
                    "value": float(values[row, at, repetition]),
                }
            )
        )
    return "\n".join(lines) + "\n"


def incomplete(what: Exported) -> list[str]:
    """Kernel and metric of what :func:`extrap` leaves out."""
    series = what.with_absences()
    return [f"{series.metrics[row]} of {series.kernels[row]}" for row in np.flatnonzero(~_complete(series)).tolist()]


def _complete(series: Series) -> Mask:
    """Which series (s,) were measured at every configuration."""
    return np.asarray(np.all(np.any(np.isfinite(series.values), axis=2), axis=1))


def _decimal(number: float) -> float:
    """A number rounded to the 15 digits that a double holds for certain: a change of its unit leaves others behind.

    Counts are left as they are.
    """
    return number if float(number).is_integer() else float(f"{number:.15g}")


def csv(what: Exported) -> str:
    """The rows of :func:`tidy`, as ``pandas.read_csv`` takes them."""
    frame = tidy(what.series())
    frame["value"] = [_decimal(x) for x in frame["value"].tolist()]
    texts = {name: frame[name].astype(object).map(cell) for name in frame.select_dtypes(exclude="number").columns}
    return str(frame.assign(**texts).rename(columns=cell).to_csv(index=False))


def parquet(what: Exported) -> bytes:
    """The rows of :func:`tidy`, as ``pandas.read_parquet`` takes them."""
    stream = io.BytesIO()
    tidy(what.series()).to_parquet(stream, index=False)
    return stream.getvalue()


def openmetrics(what: Exported) -> str:
    """Medians over repetitions as OpenMetrics gauges, ``ranksight_time_seconds{kernel="solve",ranks="8"} 0.25``."""
    series = what.series()
    assert what.experiment is not None
    application = _label(what.experiment.application)
    lines: list[str] = []
    for name in dict.fromkeys(series.metrics):
        unit = UNITS.get(described(name).unit, "")
        family = "_".join(filter(None, ("ranksight", _identifier(name), "" if name.endswith(unit) else unit)))
        lines += [f"# TYPE {family} gauge", *([f"# UNIT {family} {unit}"] if unit and family.endswith(unit) else [])]
        lines.append(f"# HELP {family} {described(name).text}")
        for row in (row for row, held in enumerate(series.metrics) if held == name):
            for at, value in _medians(series, row):
                labels = {"application": application, "kernel": _label(series.kernels[row])}
                labels |= {
                    _identifier(n): in_full(x) for n, x in zip(series.parameters, series.points[at], strict=True)
                }
                text = ",".join(f'{label}="{held}"' for label, held in labels.items())
                lines.append(f"{family}{{{text}}} {value!r}")
    return "\n".join([*lines, "# EOF"]) + "\n"


def _medians(series: Series, row: int) -> Iterator[tuple[int, float]]:
    for at, values in enumerate(series.values[row]):
        known = values[np.isfinite(values)]
        if len(known):
            yield at, float(np.median(known))


def to_xarray(experiment: Experiment, metrics: Sequence[str] | None = None) -> xarray.Dataset:
    """Measured values as an xarray data set, one variable a metric.

    `metrics`: only these. Raises ToolError when xarray is not installed.

    Returns
    -------
    Dataset
        Dimensions ``kernel``, one a parameter, and ``repetition``; NaN at configurations that were not measured. Values
        are reduced over ranks in each metric's own way; ``units`` and ``long_name`` describe them.

    Examples
    --------
    >>> dict(rs.to_xarray(rs.read("heat.exp"), ["time"]).sizes)
    {'kernel': 2, 'ranks': 4, 'size': 3, 'repetition': 1}
    """
    xarray = _package("xarray")
    series = series_from_experiment(experiment, list(metrics) if metrics else None)
    axes = [np.unique(series.points[:, at]) for at in range(len(series.parameters))]
    kernels = list(dict.fromkeys(series.kernels))
    place: tuple[Any, ...] = tuple(np.searchsorted(axis, series.points[:, at]) for at, axis in enumerate(axes))
    shape = (len(kernels), *map(len, axes), series.values.shape[2])
    dimensions = ("kernel", *series.parameters, "repetition")
    variables = {}
    for name in dict.fromkeys(series.metrics):
        values = np.full(shape, np.nan)
        for row in (row for row, held in enumerate(series.metrics) if held == name):
            values[(kernels.index(series.kernels[row]), *place)] = series.values[row]
        about = {"units": described(name).unit or "1", "long_name": described(name).text}
        variables[name] = (dimensions, values, about)
    coordinates = {"kernel": kernels, **dict(zip(series.parameters, axes, strict=True))}
    return xarray.Dataset(variables, coordinates, {"application": experiment.application})


def netcdf(what: Exported) -> bytes:
    """The data set of :func:`to_xarray` as NetCDF."""
    what.series()  # a model is refused
    assert what.experiment is not None
    return bytes(to_xarray(what.experiment, what.metrics or None).to_netcdf(engine="scipy"))


def graphs(experiment: Experiment, metrics: Sequence[str] | None = None) -> list[tuple[dict[str, float], list[Any]]]:
    """For every configuration the call tree in Hatchet's literal form, with medians over repetitions.

    Values are exclusive, as they are measured; a region that was not measured itself has zeros. Kernels that are no
    call paths are roots of their own.
    """
    series = series_from_experiment(experiment, list(metrics) if metrics else None)
    names = list(dict.fromkeys(series.metrics))
    rows = series.rows
    medians = {(row, at): value for row in range(len(series)) for at, value in _medians(series, row)}
    kernels = [kernel for kernel in dict.fromkeys(series.kernels) if kernel != WHOLE]
    found = []
    for at, point in enumerate(series.points):
        roots: dict[str, Any] = {}
        for kernel in kernels:
            children, node = roots, None
            for part in call_path(kernel):
                node = children.setdefault(part, {"values": {}, "children": {}})
                children = node["children"]
            assert node is not None
            node["values"] = {
                name: medians[rows[kernel, name], at]
                for name in names
                if (kernel, name) in rows and (rows[kernel, name], at) in medians
            }
        configuration = dict(zip(series.parameters, point.tolist(), strict=True))
        found.append((configuration, _literal(roots, names)))
    return found


def _literal(nodes: dict[str, Any], names: Sequence[str]) -> list[Any]:
    """Nodes as Hatchet's ``GraphFrame.from_literal`` takes them."""
    made = []
    for part, node in nodes.items():
        entry: dict[str, Any] = {
            # Hatchet takes no empty name, which a sample without a symbol may have.
            "frame": {"name": part or UNNAMED, "type": "region"},
            "metrics": {name: node["values"].get(name, 0.0) for name in names},
        }
        if node["children"]:
            entry["children"] = _literal(node["children"], names)
        made.append(entry)
    return made


def to_hatchet(experiment: Experiment, metrics: Sequence[str] | None = None, **configuration: float) -> GraphFrame:
    """One configuration of an experiment as a GraphFrame of Hatchet.

    Raises ToolError when Hatchet is not installed; InputError when the configuration was not measured.

    Parameters
    ----------
    metrics : sequence of str, optional
        Only these.
    **configuration
        A value for each parameter: ``to_hatchet(experiment, ranks=8, size=24)``.

    Examples
    --------
    >>> frame = rs.to_hatchet(rs.read("heat.exp"), ["time"], ranks=8, size=24)
    >>> frame.metadata["ranks"], frame.metadata["size"]
    (8.0, 24.0)
    """
    hatchet = _package("hatchet")
    asked = {name: float(value) for name, value in configuration.items()}
    for where, literal in graphs(experiment, metrics):
        if where == asked:
            frame = hatchet.GraphFrame.from_literal(literal)
            frame.metadata.update(where)
            frame.exc_metrics = [name for name in frame.dataframe.columns if name not in ("name", "type")]
            frame.inc_metrics = []
            return frame
    measured = "; ".join(in_words(where) for where, _ in graphs(experiment, metrics)[:4])
    raise InputError(f"{experiment.path} holds no run at {in_words(asked) or 'no value'}", f"measured are {measured}")


def hatchet(what: Exported) -> str:
    """JSON: ``profiles``, each with its ``configuration`` and the ``graph`` that ``GraphFrame.from_literal`` takes."""
    what.series()  # a model is refused
    assert what.experiment is not None
    profiles = [
        {"configuration": where, "graph": literal} for where, literal in graphs(what.experiment, what.metrics or None)
    ]
    return json.dumps({"application": what.experiment.application, "profiles": profiles}) + "\n"


def _package(name: str) -> Any:
    """An optional package; ToolError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ToolError(f"{name} is not installed", f"pip install 'ranksight[{name}]'") from error


def _label(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', '\\"')


def _identifier(text: str) -> str:
    plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in text)
    return f"_{plain}" if plain[:1].isdigit() else plain


def _apart(difference: float) -> str:
    """How far a function is from what predict answers, in LaTeX; empty where it is close."""
    written = far(difference).replace("%", r"\,\%")
    return f" (up to {written} from predict)" if difference > CLOSE else ""


def latex_table(what: Exported) -> str:
    """A table of LaTeX (package booktabs, and amsmath for cases): a model's functions, or an experiment's medians."""
    if what.model is not None:
        rows = [row for row in functions(what.model) if row["status"] == "ok" and row["formula"] != "none"]
        for name in what.metrics:
            if name not in what.model.fitted.metrics:
                raise InputError(f"the model has no metric {name!r}", nearest(name, what.model.fitted.metrics))
        rows = [row for row in rows if not what.metrics or row["metric"] in what.metrics]
        if not rows:
            raise InputError(
                "the model has no function of these metrics", "measure more configurations, or name others"
            )
        rows.sort(key=lambda row: (row["metric"], -np.nan_to_num(row["share"])))
        heads = ["kernel", "metric", "share", "function"]
        lines = [
            [
                latex_text(str(row["kernel"])),
                latex_text(f"{row['metric']} ({unit})" if (unit := described(row["metric"]).unit) else row["metric"]),
                "" if row["kernel"] == WHOLE or row["share"] != row["share"] else f"{100 * row['share']:.1f}\\,\\%",
                f"${latex(row['formula'])}$" + _apart(row["difference_from_predict"]),
            ]
            for row in rows
        ]
        return _booktabs(heads, lines, "llrl")
    series = what.series()
    lines = []
    for row, name in enumerate(series.metrics):
        for at, value in _medians(series, row):
            place = [in_full(x) for x in series.points[at]]
            written = format_si(value, described(name).unit).replace(" u", r" \textmu ")
            lines.append([latex_text(series.kernels[row]), latex_text(name), *place, written.replace(" ", r"\,")])
    return _booktabs(
        ["kernel", "metric", *map(latex_text, series.parameters), "median"],
        lines,
        "ll" + "r" * (len(series.parameters) + 1),
    )


def _booktabs(heads: list[str], lines: list[list[str]], columns: str) -> str:
    body = [f"  {' & '.join(line)} \\\\" for line in lines]
    head = [f"\\begin{{tabular}}{{{columns}}}", "  \\toprule", f"  {' & '.join(heads)} \\\\", "  \\midrule"]
    return "\n".join([*head, *body, "  \\bottomrule", "\\end{tabular}"]) + "\n"


FORMATS: dict[str, tuple[str, Callable[[Exported], str | bytes]]] = {
    "extrap": ("JSON Lines of Extra-P: measured values, one a line", extrap),
    "csv": ("measured values, one a row, for pandas and spreadsheets", csv),
    "parquet": ("the same as Parquet, for pandas, DuckDB, Spark", parquet),
    "openmetrics": ("medians as OpenMetrics gauges, for dashboards of CI", openmetrics),
    "netcdf": ("a NetCDF file for xarray: kernel x parameters x repetition (extra xarray)", netcdf),
    "hatchet": ("JSON with call trees that Hatchet's GraphFrame.from_literal takes", hatchet),
    "latex": ("a table for LaTeX: a model's functions, or an experiment's medians", latex_table),
}
"""What each format holds, and what writes it."""
