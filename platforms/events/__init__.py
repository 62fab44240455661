"""Event tables: which hardware events a processor counts, and how this project's metrics are formed from them."""

from ranksight.platforms.events.processors import Processor, recognise, this_processor
from ranksight.platforms.events.tables import Event, EventTable, Metric, load, names

__all__ = ["Event", "EventTable", "Metric", "Processor", "load", "names", "recognise", "this_processor"]
