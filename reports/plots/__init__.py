"""Plots. Every function draws into the axes it is given (``ax=``), or into new ones, and returns them."""

from ranksight.reports.plots._axes import save_figure
from ranksight.reports.plots.plot_answers import plot_answers, plot_model, plot_runs
from ranksight.reports.plots.plot_breakdown import plot_breakdown
from ranksight.reports.plots.plot_communication import plot_factor, plot_pairs, plot_traffic
from ranksight.reports.plots.plot_kernel import plot_kernel, plot_residuals, plot_term
from ranksight.reports.plots.plot_network import plot_shares
from ranksight.reports.plots.plot_prediction import plot_prediction
from ranksight.reports.plots.plot_ranking import plot_ranking
from ranksight.reports.plots.plot_roofline import plot_roofline
from ranksight.reports.plots.plot_validation import plot_compute, plot_validation

__all__ = [
    "plot_answers",
    "plot_breakdown",
    "plot_compute",
    "plot_factor",
    "plot_kernel",
    "plot_model",
    "plot_pairs",
    "plot_prediction",
    "plot_ranking",
    "plot_residuals",
    "plot_roofline",
    "plot_runs",
    "plot_shares",
    "plot_term",
    "plot_traffic",
    "plot_validation",
    "save_figure",
]
