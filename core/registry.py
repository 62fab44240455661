"""Registries: named things of one kind, each registered by a decorator where it is defined.

A registry fills itself on first use: it imports the modules of its package (one reader, collector, search space ... a
file) and the entry points that other distributions declare in its group, so nothing is loaded before it is asked for.
A thing asked for by its name is looked for in the module of that name first, and no other module is loaded then.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from ranksight.core.errors import ContractError, InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def _module(item: object) -> str:
    """Where a thing is defined."""
    return str(getattr(item, "__module__", None) or type(item).__module__)


class Registry(Generic[T]):
    """Named things of one kind.

    Parameters
    ----------
    kind : str
        What is registered, in the singular, for messages: ``"reader"``.
    packages : tuple of str
        Packages whose modules register themselves when imported.
    group : str, optional
        Entry point group for third parties; each entry point names a module or function that registers on import.
    """

    def __init__(self, kind: str, packages: tuple[str, ...] = (), group: str | None = None) -> None:
        self.kind = kind
        self._packages = packages
        self._group = group
        self._items: dict[str, T] = {}
        self._filled = False

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that registers its argument under `name`; InputError refuses a name that is taken."""

        def decorate(item: T) -> T:
            if self._items.get(name, item) is not item:
                raise InputError(
                    f"{self.kind} {name!r} is registered twice, by {_module(self._items[name])} and {_module(item)}",
                    "rename the second, or uninstall its package",
                )
            self._items[name] = item
            return item

        return decorate

    def _fill(self) -> None:
        if self._filled:
            return
        for module in self._modules():
            importlib.import_module(module)
        if self._group is not None:
            from importlib.metadata import entry_points  # takes longer to import than a registry to fill

            for entry in entry_points(group=self._group):
                self._load_entry(entry)
        # Only now: a module that cannot be imported raises each time, and is not an unknown name the second time.
        self._filled = True

    def _load_entry(self, entry: EntryPoint) -> None:
        """Load what another distribution registers; what goes wrong in it is said with its name."""
        owner = "an unknown package" if entry.dist is None else f"the package {entry.dist.name}"
        try:
            entry.load()
        except InputError as error:
            raise ContractError(f"{owner}: {error.what}", error.remedy) from error
        except Exception as error:
            what = f"{self.kind} {entry.name!r} of {owner} cannot be loaded: {type(error).__name__}: {error}"
            raise ContractError(what, "update the package, or uninstall it") from error

    def _modules(self) -> list[str]:
        """Full names of the modules that register things."""
        return [
            f"{package}.{module.name}"
            for package in self._packages
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__)
            if not module.name.startswith("_")
        ]

    def _load(self, name: object) -> None:
        """Load what may register `name`: the module called so, or else all."""
        if self._filled or name in self._items or not isinstance(name, str):
            return
        for module in self._modules():
            if module.rpartition(".")[2] == name.lower().replace("-", "_").replace(" ", "_"):
                importlib.import_module(module)
        if name not in self._items:
            self._fill()

    def __getitem__(self, name: str) -> T:
        self._load(name)
        try:
            return self._items[name]
        except KeyError:
            import difflib  # an error alone needs it

            near = difflib.get_close_matches(name, self._items, n=3)
            known = ", ".join(near or sorted(self._items))
            raise InputError(
                f"no {self.kind} is named {name!r}", f"{'nearest' if near else 'known'}: {known}"
            ) from None

    def __contains__(self, name: object) -> bool:
        self._load(name)
        return name in self._items

    def __iter__(self) -> Iterator[str]:
        self._fill()
        return iter(sorted(self._items))

    def __len__(self) -> int:
        self._fill()
        return len(self._items)
