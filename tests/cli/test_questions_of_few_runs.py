"""What verbs answer on a table of four times: marks of what is unsupported, drawings and next commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ranksight.cli.main import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("few")
    (folder / "t.csv").write_text("ranks,time\n1,10.2\n2,5.3\n4,2.9\n8,1.61\n")
    assert main(["import", "csv", str(folder / "t.csv"), "-o", str(folder / "t.exp"), "--quiet"]) == 0
    assert main(["fit", str(folder / "t.exp"), "--quiet"]) == 0
    return folder / "t.exp.model.json"


def test_unsupported_values_are_marked_in_every_table(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(model), "--ranks", "8,64,4096"]) == 0
    over = next(line for line in capsys.readouterr().out.splitlines() if "█" in line)
    assert over.rstrip().endswith(" ?")
    assert over.count("?") == 1
    page = tmp_path / "page.html"
    assert main(["report", str(model), "--ranks", "4096", "-o", str(page)]) == 4
    text = page.read_text()
    tables = [part.split("</table>")[0] for part in text.split("<table")[1:]]
    tables = [table for table in tables if ">8</t" in table and re.search(">4,?096</t", table)]
    assert len(tables) == 3  # of the prediction, of its parts, of efficiencies
    for table in tables:
        assert "?: insufficient data" in table
        assert re.search(r"<td[^>]*>[^<]* \?</td>", table)
    # The run that is named to be made is one on the whole page.
    (planned,) = set(re.findall(r"measure at (\d+) ranks", text.replace(",", "")))
    assert f"--ranks {planned}" in text


def test_a_drawing_reaches_to_the_last_measurement(model: Path, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib.axes")
    drawn: list[float] = []
    plain = matplotlib.Axes.fill_between

    def kept(self, x, *rest, **more):  # type: ignore[no-untyped-def]
        drawn.append(max(x))
        return plain(self, x, *rest, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matplotlib.Axes, "fill_between", kept)
        assert main(["predict", str(model), "--ranks", "2", "--plot", str(tmp_path / "p.svg"), "-q"]) == 0
    assert drawn == [8]


def test_a_model_compared_with_itself_is_said_to_be(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(model), str(model.parent / "." / model.name)]) == 0
    said = capsys.readouterr().out
    assert f"before and after are both {model}" in " ".join(said.split())
    assert "next: ranksight diagnose" in said
