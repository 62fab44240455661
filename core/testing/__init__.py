"""Conformance kits: checks that a reader, a collector, a platform or a law keeps its contract.

They are for the tests of packages that add one, and for our own. Each raises AssertionError that names what is wrong
and which part of the contract says so, and returns nothing where all is well::

    from ranksight.core.testing import check_reader

    def test_my_reader():
        check_reader(MyTool(), "tests/data/sample.txt")
"""

from ranksight.core.testing.collectors import check_collector
from ranksight.core.testing.laws import check_law
from ranksight.core.testing.platforms import check_platform
from ranksight.core.testing.readers import check_reader, read_or_error

__all__ = ["check_collector", "check_law", "check_platform", "check_reader", "read_or_error"]
