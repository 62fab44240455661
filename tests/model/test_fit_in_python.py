"""The package's functions as a notebook uses them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ranksight
from ranksight.cli.main import main
from ranksight.core.errors import InputError
from ranksight.model.fitted_model import Model

TABLE = "ranks,size,kernel,time\n" + "".join(
    f"{p},{n},{kernel},{(2 * n + 0.5 * p if kernel == 'walk' else 3.0):g}\n"
    for p in (1, 2, 4, 8, 16)
    for n in (10, 20, 30, 40, 50)
    for kernel in ("walk", "rest")
)


def test_python_and_the_command_line_make_the_same_model(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--parameter", "size"]
    assert main([*words, "--kernel", "kernel", "--metric", "time", "-o", str(tmp_path / "e")]) == 0
    assert main(["fit", str(tmp_path / "e"), "--quiet", "-o", str(tmp_path / "m.json")]) == 0
    model = ranksight.fit(ranksight.read(tmp_path / "e"))
    assert ranksight.fit(tmp_path / "e").table().equals(model.table())
    asked = {"ranks": 64, "size": 80}
    table = model.predict(**asked).table().set_index("kernel")
    stored = Model.load(tmp_path / "m.json").predict(**asked).table().set_index("kernel")
    # Without any noise the intervals are made of rounding errors.
    for name, near in (("value", 1e-9), ("lower", 1e-3), ("upper", 1e-3)):
        assert table[name].to_numpy() == pytest.approx(stored[name].to_numpy(), rel=near)
    assert table.loc["walk", "value"] == pytest.approx(2 * 80 + 0.5 * 64, rel=0.02)
    assert table.loc["rest", "value"] == pytest.approx(3, rel=1e-6)


def test_a_platform_is_named_or_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(TABLE)
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--parameter", "size"]
    assert main([*words, "--kernel", "kernel", "--metric", "time", "-o", str(tmp_path / "e")]) == 0
    experiment = ranksight.read(tmp_path / "e")
    assert ranksight.fit(experiment, platform="zen4").parameters == ("ranks", "size")
    with pytest.raises(InputError, match="cray-1"):
        ranksight.fit(experiment, platform="cray-1")


@pytest.mark.parametrize("asked", [[[64, 128]], "many", {"ranks": 64}, [64, None], [], float("inf"), 10**400])
def test_what_no_parameter_can_be_is_refused_in_a_line(tmp_path: Path, asked: object) -> None:
    (tmp_path / "t.csv").write_text("ranks,time\n" + "".join(f"{p},{1 + 8 / p:g}\n" for p in (1, 2, 4, 8, 16)))
    words = ["import", "csv", str(tmp_path / "t.csv"), "--parameter", "ranks", "--metric", "time"]
    assert main([*words, "-o", str(tmp_path / "e")]) == 0
    model = ranksight.fit(tmp_path / "e")
    with pytest.raises(InputError, match="parameter ranks is asked at .*plain list"):
        model.predict(ranks=asked)  # type: ignore[arg-type]
    assert len(model.predict(ranks=range(16, 20)).table()) == len(model.predict(ranks=(16, 17, 18, 19)).table()) > 3
