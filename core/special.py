"""Loading of ``scipy.special`` without what it does not use.

scipy copies the namespace of numpy, and so imports every part of numpy that is loaded on first use: with f2py and the
test tools among them, this takes longer than the import of the special functions themselves, in every command.
"""

from __future__ import annotations

import importlib
import sys

import numpy as np

UNUSED = ("char", "core", "ctypeslib", "f2py", "ma", "polynomial", "random", "rec", "testing", "typing")
"""Parts of numpy that no special function uses."""


def load() -> None:
    """Import ``scipy.special``; afterwards the parts of numpy are there on first use, as they were before."""
    if "scipy.special" in sys.modules:
        return
    absent = [name for name in UNUSED if name not in vars(np)]
    for name in absent:
        setattr(np, name, None)
    try:
        importlib.import_module("scipy.special")
    finally:
        for name in absent:
            if vars(np).get(name) is None:  # an import in the meantime has set it
                delattr(np, name)
