"""Linear algebra on one thread, and afterwards on as many as before."""

from collections.abc import Iterator
from threading import Event, Thread

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from ranksight.core.onethread import one_thread
from ranksight.model.fitting import fitted as fitting_of_one
from ranksight.model.fitting import outcome
from ranksight.model.fitting.fit_series import fit_series
from ranksight.model.series.reducing import Series

LIBRARIES = ThreadpoolController().select(user_api="blas")


def threads() -> set[int]:
    """How many threads each of the libraries may use."""
    return {library["num_threads"] for library in LIBRARIES.info()}


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    if not LIBRARIES.info():
        pytest.skip("this NumPy has no BLAS library whose number of threads can be set")
    with LIBRARIES.limit(limits=2):
        yield


def test_one_thread_inside_and_those_of_before_afterwards() -> None:
    with one_thread():
        assert threads() == {1}
        with one_thread():
            assert threads() == {1}
        assert threads() == {1}
    assert threads() == {2}


def test_an_error_inside_sets_back_what_was() -> None:
    with pytest.raises(ZeroDivisionError), one_thread():
        1 / 0  # noqa: B018
    assert threads() == {2}


@pytest.mark.parametrize("last", [False, True], ids=["leaves first", "leaves last"])
def test_another_thread_leaves_the_limit_alone(last: bool) -> None:
    entered, leave = Event(), Event()

    def other() -> None:
        with one_thread():
            entered.set()
            leave.wait(60)

    thread = Thread(target=other)
    with one_thread():
        thread.start()
        assert entered.wait(60)
        if not last:
            leave.set()
            thread.join()
        assert threads() == {1}
    leave.set()
    thread.join()
    assert threads() == {2}
    with one_thread():
        assert threads() == {1}


def test_fits_and_forecasts_work_on_one(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for module, name in ((outcome, "judge"), (fitting_of_one, "abstain")):
        works = getattr(module, name)

        def watched(*given: object, works: object = works, name: str = name) -> object:
            seen.append((name, threads()))
            return works(*given)  # type: ignore[operator]

        monkeypatch.setattr(module, name, watched)
    points = np.array([[2.0], [4.0], [8.0], [16.0], [32.0]])
    fit_series(Series(("ranks",), points, 3 * points[None] + 1, ("k",), ("time",))).predict(points)
    assert seen == [("judge", {1}), ("abstain", {1})]
    assert threads() == {2}
