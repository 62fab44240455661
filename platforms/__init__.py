"""Machine descriptions: topology, clock, caches, latencies, bandwidths, network; loading and calibration."""

from ranksight.platforms.files import load, names
from ranksight.platforms.platform import Cache, Clock, Layout, Memory, Platform, Source
from ranksight.platforms.simulation import SimulatedCache, simulated_caches
from ranksight.platforms.writing import save

__all__ = [
    "Cache",
    "Clock",
    "Layout",
    "Memory",
    "Platform",
    "SimulatedCache",
    "Source",
    "load",
    "names",
    "save",
    "simulated_caches",
]
