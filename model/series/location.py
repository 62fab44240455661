"""Locations of series: one value a configuration, with what is known of its scatter."""

from __future__ import annotations

from dataclasses import dataclass

from ranksight.core.arrays import Array, Index


@dataclass(frozen=True)
class Location:
    """One value a configuration, with what is known of its scatter."""

    values: Array  # (s, n): reduced over repetitions; NaN where missing
    scale: Array  # (s, n): size that relative errors refer to, positive
    repeats: Array  # (s, n)
    """Number of repetitions, zero where missing; for less efficient locations the number that would do for the mean."""
    variance: Array  # (s,)
    """Relative variance of one repetition, moderated by the other series; NaN where nothing was repeated."""
    freedom: Array  # (s,): degrees of freedom behind `variance`
    samples: Array  # (s,)
    """Samples behind the value of a configuration, in the mean; infinite where values are not made of samples. A
    configuration of more samples counts for more repetitions."""

    def part(self, which: slice | Index) -> Location:
        """The same of some series."""
        return Location(*(getattr(self, name)[which] for name in Location.__dataclass_fields__))
