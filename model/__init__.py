"""Functions and their search, resource metrics, blocking factors, the BSP sum and its uncertainty."""

from ranksight.core import special

special.load()  # before any module asks scipy for a function
