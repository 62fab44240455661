"""Ranksight: predicts the runtime of MPI programs at scale and shows what limits their scaling.

The package is the repository's root. Importing it loads neither numpy nor pandas; names are resolved on first use.
"""

# Nothing is imported here, not even __future__: until the command answers Ctrl-C, nothing may take time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ranksight.cli._python import import_
    from ranksight.core.experiment import Experiment, Run, read
    from ranksight.counters.frames import from_dict, from_frame
    from ranksight.model.fit import fit
    from ranksight.model.fitted_model import Model, load
    from ranksight.reports.exporting import to_hatchet, to_xarray
    from ranksight.reports.validation import validate
    from ranksight.reports.widget import widget

__version__ = "0.1.0"

_LAZY = {
    "Experiment": "ranksight.core.experiment",
    "Run": "ranksight.core.experiment",
    "read": "ranksight.core.experiment",
    "from_dict": "ranksight.counters.frames",
    "from_frame": "ranksight.counters.frames",
    "fit": "ranksight.model.fit",
    "import_": "ranksight.cli._python",
    "Model": "ranksight.model.fitted_model",
    "load": "ranksight.model.fitted_model",
    "to_hatchet": "ranksight.reports.exporting",
    "to_xarray": "ranksight.reports.exporting",
    "validate": "ranksight.reports.validation",
    "widget": "ranksight.reports.widget",
}
__all__ = ["Experiment", "Model", "Run", "__version__", "fit", "from_dict", "from_frame", "import_", "load", "read",
           "to_hatchet", "to_xarray", "validate", "widget"]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'ranksight' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
