"""Plots: into the axes given, with names taken literally."""

from __future__ import annotations

import io
from xml.sax.saxutils import escape

import pytest

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.core.names import short_names
from ranksight.model.fitted_model import Model
from ranksight.reports import plots
from ranksight.reports.ideal import ideal
from ranksight.reports.measured import measured
from ranksight.reports.sweep import sweep
from ranksight.reports.traffic import pairs

HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'


def test_every_plot_draws_into_the_axes_given(model: Model, known: Experiment) -> None:
    asked, found = sweep(model, to=256), measured(model, [known])
    assert found is not None
    matrix = pairs([known])
    assert matrix is not None
    for draw in (
        lambda ax: plots.plot_prediction(asked, found, ideal(asked), ax=ax),
        lambda ax: plots.plot_breakdown(asked, ax=ax),
        lambda ax: plots.plot_ranking(asked, ax=ax),
        lambda ax: plots.plot_kernel(asked, HOSTILE, "time", found, ax=ax),
        lambda ax: plots.plot_residuals(asked, HOSTILE, "time", found, ax=ax),
        lambda ax: plots.plot_pairs(matrix, ax=ax),
    ):
        ax = Figure().add_subplot()
        assert draw(ax) is ax
        assert ax.has_data()
        new = draw(None)
        assert new is not ax
        assert new.figure.axes[0] is new


def test_values_that_would_touch_are_turned(model: Model) -> None:
    asked = sweep(model, to=1024)
    for width, turned in ((15.0, False), (3.0, True)):
        ax = plots.plot_breakdown(asked, ax=Figure(figsize=(width, 4.0)).add_subplot())
        assert (ax.get_xticklabels()[0].get_rotation() != 0) == turned


def test_the_prediction_shows_what_was_measured_and_predicted(model: Model, known: Experiment) -> None:
    asked = sweep(model, to=256)
    ax = plots.plot_prediction(asked, measured(model, [known]), ideal(asked))
    lines = {tuple(line.get_xdata()): line.get_ydata() for line in ax.get_lines()}
    assert (1, 2, 4, 8, 16) in lines
    assert lines[1, 2, 4, 8, 16] == pytest.approx([0.0207, 0.0209, 0.0213, 0.0221, 0.0237])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels[0] == "predicted"
    assert "ideal weak scaling" in labels
    assert ax.get_xscale() == ax.get_yscale() == "log"


def test_names_are_drawn_literally(model: Model) -> None:
    ax = plots.plot_ranking(sweep(model, to=256))
    target = io.StringIO()
    plots.save_figure(ax.figure, io.BytesIO())
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(target, format="svg")
    assert "$x_1$ {{ 7*7 }}" in target.getvalue()
    (cut,) = short_names([HOSTILE], 28).values()
    assert "&lt;" in escape(cut)
    assert escape(cut) in target.getvalue()


def test_long_and_broken_names_can_be_drawn() -> None:
    assert short_names(["a\x00b\x1b[31m"], 34) == {"a\x00b\x1b[31m": "a\ufffdb\ufffd[31m"}
    (cut,) = short_names(["x" * 1000], 34).values()
    assert len(cut) == 34
    assert "…" in cut


def test_an_unknown_kernel_is_refused(model: Model) -> None:
    with pytest.raises(InputError, match="no time of 'nothing'"):
        plots.plot_kernel(sweep(model, to=256), "nothing")
