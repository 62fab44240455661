"""Optional packages of Python: formats and exports that need one, and whether it is installed."""

from __future__ import annotations

import importlib.util
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
}
"""Name of each package in the index, the extra that installs it, and what does not work without."""
MODULES = {"caliper-reader": "caliperreader"}
"""What a package is imported as where that is not its name."""


def _packages(machine: Machine) -> Iterator[Finding]:
    for name, (extra, without) in PACKAGES.items():
        try:
            if importlib.util.find_spec(MODULES.get(name, name)) is None:
                raise PackageNotFoundError
            yield finding("package", name=name, version=version(name))
        except PackageNotFoundError:
            yield finding("no_package", name=name, extra=extra, without=without)


EXAMINATIONS: tuple[Examination, ...] = (_packages,)
