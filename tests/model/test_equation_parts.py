"""Steps between kernels' times and the program's, each by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.model.application.bulk_synchronous import Application
from ranksight.model.quantity import Quantity
from ranksight.model.resource.equation import LEVELS
from ranksight.model.uncertainty import forecast
from ranksight.model.uncertainty.forecast import Forecast

POINTS = np.array([[32.0], [64.0], [128.0]])


def times(*seconds: list[float]) -> Forecast:
    value = np.array(seconds)
    return Forecast.settled(value, 0.9 * value, 1.2 * value)


def test_cycles_are_the_time_at_the_clock_of_the_kernel() -> None:
    """A kernel whose cycles are 1.3 times fewer than its time has at the clock; another whose clock is not known."""
    clock = np.array([2e9, 2.5e9, 3e9])
    counted: Any = SimpleNamespace(kernels=("a", "b"), offset=np.array([np.log(1.3), np.nan]))
    equation: Any = SimpleNamespace(shared=(), counted=counted)
    rows = {("a", "time"): 0, ("b", "time"): 1, ("a", "cycles"): 2, ("b", "cycles"): 3}
    mixed, predicted = times([4.0, 2.0, 1.0], [1.0, 1.0, 1.0]), times(*[[7.0] * 3] * 4)
    of_clock: Any = SimpleNamespace(clock=Quantity.exact(np.log(clock)[None]))
    asked: Any = SimpleNamespace(rows=rows, counted=of_clock, slowest=None)
    answer = Application._cycles(equation, predicted, mixed, {"a": 0, "b": 1}, asked)
    for name, factor in (("value", 1.0), ("lower", 0.9), ("upper", 1.2)):
        assert getattr(answer, name)[2] == pytest.approx(factor * np.array([4.0, 2.0, 1.0]) * clock / 1.3)
        assert getattr(answer, name)[[0, 1, 3]] == pytest.approx(factor * 7.0)
    asked.slowest = lambda _: (np.array([[2.0], [4.0]]), np.zeros((2, 1)))  # over the mean rank, whose cycles they are
    answer = Application._cycles(equation, predicted, mixed, {"a": 0, "b": 1}, asked)
    assert answer.value[2] == pytest.approx(np.array([4.0, 2.0, 1.0]) * clock / 1.3 / 2.0)
    shared: Any = SimpleNamespace(kernels=("b",), clock=np.array([1e9]))
    equation = SimpleNamespace(shared=(shared,), counted=None)
    answer = Application._cycles(equation, predicted, mixed, {"a": 0, "b": 1}, asked)
    assert answer.value[3] == pytest.approx(1e9)
    assert answer.value[2] == pytest.approx(7.0)


@pytest.mark.parametrize(("stalls", "blocked"), [(True, 0.5), (False, 1.0)])
@pytest.mark.parametrize(("loads", "status"), [(1e6, forecast.OK), (4e11, forecast.WIDE)])
def test_loads_that_a_cache_no_longer_serves_may_wait_for_memory(
    stalls: bool, blocked: float, loads: float, status: int
) -> None:
    """Each 160 cycles longer at 2 GHz; as others do where stalls were counted, else by itself."""
    more = np.zeros((2, 3))
    more[1, 2] = loads
    cache: Any = SimpleNamespace(kernels=("x", "b"), name=f"L{LEVELS[2][-1]}", spilled=lambda *_: (more, None))
    functions: Any = SimpleNamespace(
        fitted=SimpleNamespace(parameters=("ranks",)), rows={("a", "time"): 0, ("b", "time"): 1}
    )
    value = np.full((2, 3), 2e9)
    upper = SimpleNamespace(upper=np.full((2, 3), 0.5))
    latencies = np.array([4.0, 14.0, 40.0, 200.0])
    terms: Any = SimpleNamespace(
        kernels=("a", "b"), counted=np.array([False, stalls]), blocking=upper, latencies=latencies,
        clock=SimpleNamespace(value=value),
    )  # fmt: skip
    before = times([10.0] * 3, [10.0] * 3)
    answer = Application._opened(SimpleNamespace(cache=cache), before, functions, POINTS, before, terms)  # type: ignore[arg-type]
    expected = before.upper.copy()
    expected[1, 2] += loads * blocked * 160 / 2e9
    assert answer.upper == pytest.approx(expected)
    assert answer.value == pytest.approx(before.value)
    assert answer.status[1].tolist() == [forecast.OK, forecast.OK, status]
    more[:] = 0
    assert Application._opened(SimpleNamespace(cache=cache), before, functions, POINTS, before, terms) is before  # type: ignore[arg-type]


def test_algorithms_are_stated_of_a_network_alone() -> None:
    network: Any = SimpleNamespace(stating=lambda algorithms: ("stated", algorithms))
    communication: Any = SimpleNamespace(on=lambda stated: ("on", stated))
    nothing: Any = SimpleNamespace(communication=communication, network=None)
    with pytest.raises(InputError, match="no network"):
        Application.with_algorithms(nothing, {"MPI_Bcast": "chain"})
    nothing.communication, nothing.network = None, network
    with pytest.raises(InputError, match="no network"):
        Application.with_algorithms(nothing, {"MPI_Bcast": "chain"})
