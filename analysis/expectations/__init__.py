"""Expectations: how functions should grow, stated in big O, and whether they do.

After Shudler, Calotoiu, Hoefler, Strube and Wolf 2015, *Exascaling Your Library: Will Your Implementation Meet Your
Expectations?* (ICS15, 165-175): a search space is generated around each expectation, the function found is stripped to
its leading term, divided by the expectation and held against a deviation limit.
"""
