"""Optional packages of Python: formats and exports that need one, and whether it is installed and can be imported."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from ranksight.counters.doctor.findings import Examination, Finding, Machine, finding

PACKAGES = {
    "pycubexr": ("cube", "profile.cubex of Score-P and Scalasca cannot be read"),
    "caliper-reader": ("caliper", ".cali files of Caliper cannot be read; its JSON can"),
    "otf2": ("otf2", "event traces of Score-P cannot be read"),
    "xarray": ("xarray", "to_xarray and 'export netcdf' have nothing to make"),
    "hatchet": ("hatchet", "to_hatchet makes no GraphFrame"),
    "distributed": ("dask", "--dask reaches no scheduler"),
    "anywidget": ("widget", "notebooks show no widget of a model"),
}
"""Name of each package in the index, the extra that installs it, and what does not work without."""
MODULES = {"caliper-reader": "caliperreader"}
"""What a package is imported as where that is not its name."""


def _packages(machine: Machine) -> Iterator[Finding]:
    for name, (extra, without) in PACKAGES.items():
        module = MODULES.get(name, name)
        try:
            if importlib.util.find_spec(module) is None:
                raise PackageNotFoundError
            number = version(name)
        except PackageNotFoundError:
            yield finding("no_package", name=name, extra=extra, without=without)
            continue
        try:
            with warnings.catch_warnings(action="ignore"):
                importlib.import_module(module)
            yield finding("package", name=name, version=number)
        except Exception as error:  # of code that is not this package's
            why = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            yield finding("broken_package", name=name, version=number, why=why, extra=extra, without=without)


EXAMINATIONS: tuple[Examination, ...] = (_packages,)
