"""Locations of series: one value a configuration, with what is known of its scatter."""

from __future__ import annotations

from dataclasses import dataclass

from ranksight.core.arrays import Array, Index


@dataclass(frozen=True)
class Location:
    """One value a configuration, with what is known of its scatter.

    Attributes
    ----------
    values : (s, n)
        Reduced over repetitions; NaN where missing.
    scale : (s, n)
        Size that relative errors refer to, positive.
    repeats : (s, n)
        Number of repetitions, zero where missing; for less efficient locations the number that would do for the mean.
    variance : (s,)
        Relative variance of one repetition, moderated by the other series; NaN where nothing was repeated.
    freedom : (s,)
        Degrees of freedom behind `variance`.
    samples : (s,)
        Samples behind the value of a configuration, in the mean; infinite where values are not made of samples. A
        configuration of more samples counts for more repetitions.
    """

    values: Array
    scale: Array
    repeats: Array
    variance: Array
    freedom: Array
    samples: Array

    def part(self, which: slice | Index) -> Location:
        """The same of some series."""
        return Location(*(getattr(self, name)[which] for name in Location.__dataclass_fields__))
