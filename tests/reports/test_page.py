"""The page: whole, closed, escaped, small."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from jinja2 import ChoiceLoader, DictLoader, PackageLoader

from ranksight.analysis.planning.cost import cost_of
from ranksight.core.experiment import Experiment
from ranksight.model.fitted_model import Model
from ranksight.reports.html import context
from ranksight.reports.html import page as whole_page
from ranksight.reports.html.context import Context
from ranksight.reports.html.encoding import MISSING, STEPS, Packed, pack
from ranksight.reports.html.page import render
from ranksight.reports.html.sections import Section, pages
from ranksight.reports.html.writing import embed
from ranksight.reports.ideal import recommended
from ranksight.reports.sweep import sweep

HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'


class Page(HTMLParser):
    """Elements, text and script bodies of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.bodies: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.bodies.setdefault(self._open[-1], []).append(data)
        else:
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def unpack(packed: Packed, columns: int) -> np.ndarray:
    """The rows again, (s, columns), within half a step."""
    codes = np.frombuffer(base64.b64decode(packed.codes), dtype="<u2").reshape(-1, columns).astype(np.float64)
    scale = np.array(packed.scale, dtype=np.float64).reshape(-1, 3)
    values = scale[:, :1] + np.where(codes == MISSING, np.nan, codes) / STEPS * (scale[:, 1:2] - scale[:, :1])
    with np.errstate(over="ignore"):
        return np.where(scale[:, 2:] > 0, np.exp(values), values)


@pytest.fixture(scope="module")
def text(model: Model, known: Experiment, fresh: Experiment) -> str:
    return render(Context(model, sweep(model, to=256), (known, fresh)))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_section_is_there_and_the_navigation_leads_to_it(page: Page) -> None:
    sections = [attributes["id"] for attributes in page.all("section")]
    expected = [
        "front",
        "ask",
        "breakdown",
        "efficiency",
        "ranking",
        "kernels",
        "pages",
        "communication",
        "unpredicted",
    ]
    assert sections == [*expected, "evidence"]
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [a["href"] for a in page.all("a")]
    assert links
    assert all(str(link).removeprefix("#") in ids for link in links)


def test_nothing_is_loaded_from_elsewhere(page: Page, text: str) -> None:
    assert not page.all("link")
    assert not page.all("iframe")
    for tag, attributes in page.elements:
        for name in ("src", "srcset", "data", "action", "formaction", "poster", "background"):
            assert name not in attributes, (tag, attributes)
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name != "style"
            if name == "href":
                assert str(value).startswith("#") or (tag == "image" and str(value).startswith("data:image/png;base64"))
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_the_policy_allows_just_the_pages_own_style_and_script(page: Page) -> None:
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    assert rules["default-src"] == "'none'"
    style, script = page.bodies["style"], page.bodies["script"]
    for key, body in (("style-src", style[0]), ("script-src", script[-1])):
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert rules[key] == f"'sha256-{digest}'"
    assert len(style) == 1


def test_hostile_names_are_text_everywhere(page: Page, text: str) -> None:
    assert "<script>alert" not in text
    assert "alert(1)" in text
    assert len(page.all("script")) == 4
    said = "".join(page.texts)
    assert HOSTILE in said
    assert "known <program>" in said
    assert "$x_1$ {{ 7*7 }}" in said
    assert "</script><b>" in said
    assert "49" not in re.findall(r"\$x_1\$ (\S+)", said)
    assert not page.all("b")
    assert any(a.get("title") == HOSTILE for a in page.all("a"))


def test_names_in_sentences_steer_nothing(model: Model) -> None:
    named = replace(model, application="he\x1b[31mat\x07")
    text = render(Context(named, sweep(model, to=64), ()))
    assert "he\ufffd[31mat\ufffd" in text
    assert not [letter for letter in text if ord(letter) < 32 and letter not in "\n\t"]


def unzipped(body: str) -> str:
    """What the page holds compressed; nothing where it is not."""
    return zlib.decompress(base64.b64decode(body)).decode() if body.startswith("eN") else ""


def test_embedded_data_is_read_back(page: Page) -> None:
    grid, figures = (json.loads(body) for body in page.bodies["script"] if body.startswith("{"))
    assert [axis["name"] for axis in grid["axes"]] == ["ranks", "size"]
    (series,) = (json.loads(unzipped(body)) for body in page.bodies["script"] if unzipped(body))
    assert set(figures) >= {"prediction", "breakdown", "ranking"}
    assert figures["prediction"]["heads"][-1] == "256 ranks"
    assert len(series["points"]) == 12
    columns = 3 * len(series["x"]) * len(series["others"]) + 2 * 12
    rows = unpack(Packed(series["codes"], series["scale"]), columns)
    assert len(rows) == len(series["names"]) == 9
    at = [n for n, name in enumerate(series["names"]) if name == "time"]
    assert sorted(rows[at, len(series["x"]) - 1]) == pytest.approx([5e-4, 0.02, 2e-4 * 256], rel=0.01)


def test_small_kernels_are_packed_and_those_beyond_are_not_linked(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PLAIN", 3)
    monkeypatch.setattr(context, "MOST_SERIES", 8)
    page = Page(render(Context(model, sweep(model, to=256))))
    (smaller,) = (unzipped(body) for body in page.bodies["script"] if "<details" in unzipped(body))
    plain = [a["id"] for a in page.all("details") if a.get("class") == "kernel"]
    packed = [a["id"] for a in Page(smaller).all("details")]
    assert (len(plain), len(packed)) == (1, 1)
    linked = {str(a["href"]).removeprefix("#") for a in page.all("a") if a.get("class") == "name"}
    assert linked == {*plain, *packed}


def test_a_kernel_names_its_source_file_where_that_is_known(text: str) -> None:
    assert re.findall(r"Defined in <code>(.*?)</code>", text) == ["src/&lt;heat&gt;.c:12"]


def test_json_cannot_end_its_element() -> None:
    given = {"a": "</script><!--", "b": ["\u2028&'"]}
    made = str(embed(given))
    assert not set("<>&'\u2028") & set(made)
    assert json.loads(made) == given


def test_figures_have_alternatives_and_text(page: Page, text: str) -> None:
    pictures = page.all("svg")
    assert len(pictures) >= 4
    assert all(len(str(picture["aria-label"])) > 20 for picture in pictures)
    assert re.search(r"<text[^>]*>predicted</text>", text)
    assert 'fill="currentColor"' in text
    assert "f0072b2" in text


def test_the_answer_and_the_measured_points_are_there(page: Page) -> None:
    said = " ".join(" ".join(page.texts).split())
    assert "At 256 ranks, size 200, known <program> is predicted to take" in said
    assert "Compared with 2 configurations" in said
    assert "mpirun -n 16 ./known" in said
    assert "node<1>" in said


def test_without_times_the_page_says_so(known: Experiment) -> None:
    from ranksight.model.fit import assemble

    model = assemble(known, ["instructions"])[0]
    said = Page(render(Context(model, sweep(model, to=64), (known,))))
    sections = [attributes["id"] for attributes in said.all("section")]
    assert "breakdown" not in sections
    assert "measured without times" in " ".join(said.texts)


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (3, 5), elements=st.floats(1e-12, 1e15) | st.just(float("nan"))))
def test_packed_numbers_keep_three_digits(rows: np.ndarray) -> None:
    again = unpack(pack(rows), 5)
    assert (np.isnan(again) == np.isnan(rows)).all()
    known = np.isfinite(rows)
    assert again[known] == pytest.approx(rows[known], rel=1e-3)


def test_packed_numbers_of_both_signs_are_linear() -> None:
    rows = np.array([[-1.0, 0.0, 2.0, np.inf], [0.0, 0.0, 0.0, 0.0], [np.nan] * 4])
    again = unpack(pack(rows), 4)
    assert again[0, :3] == pytest.approx([-1, 0, 2], abs=1e-4)
    assert np.isnan(again[0, 3])
    assert again[1].tolist() == [0, 0, 0, 0]
    assert np.isnan(again[2]).all()


def test_figures_that_scroll_on_a_telephone_are_reached_by_the_keyboard(
    model: Model, known: Experiment, fresh: Experiment
) -> None:
    text = render(Context(model, sweep(model, to=64), (known, fresh)))
    canvases = re.findall(r'<div class="canvas"[^>]*>', text)
    assert any("data-figure" not in each for each in canvases)
    assert all('tabindex="0"' in each and "aria-label=" in each for each in canvases)


@pytest.mark.slow
def test_six_hundred_kernels_of_fifteen_metrics_fit_three_megabytes(tmp_path: Path) -> None:
    import pandas as pd

    from ranksight.core.experiment import Run
    from ranksight.model.fit import assemble

    random = np.random.default_rng(2)
    names = ("time", "visits", "instructions", "loads", "stores", "loads_l1", "loads_l2", "loads_l3", "loads_mem")
    names += ("flops", "branches", "branch_misses", "bytes_mem", "cycles", "stall_cycles")
    experiment = Experiment.create(tmp_path / "e", "large", ["ranks"])
    scale, power = random.uniform(1, 100, (600, 15)), random.uniform(-1, 0.3, (600, 15))
    kernels = [f"module_{k % 20}::kernel_{k}<double, {k}>" for k in range(600)]
    for p in (1, 2, 4, 8, 16, 32):
        values = scale * p**power * random.lognormal(0, 0.02, (600, 15))
        experiment.add(Run({"ranks": p}), pd.DataFrame(values, columns=list(names)).assign(kernel=kernels, rank=-1))
    model = assemble(experiment, all_kernels=True)[0]
    text = render(Context(model, sweep(model), (experiment,)))
    assert len(text.encode()) < 3_000_000
    shown = [text, *map(unzipped, Page(text).bodies["script"])]
    assert sum(each.count('class="kernel"') for each in shown) == 600


@pytest.mark.slow
def test_two_hundred_kernels_of_eight_metrics_fit_two_megabytes(tmp_path: Path) -> None:
    import pandas as pd

    from ranksight.core.experiment import Run
    from ranksight.model.fit import assemble

    random = np.random.default_rng(1)
    names = ("time", "instructions", "loads", "stores", "loads_l1", "loads_l2", "flops", "branches")
    experiment = Experiment.create(tmp_path / "e", "large", ["ranks", "size"])
    scale, power = random.uniform(1, 100, (200, 8)), random.uniform(-1, 1, (200, 8))
    kernels = [f"solver::level_{k}<double, std::vector<float>>::apply_preconditioner" for k in range(200)]
    for p in (1, 2, 4, 8, 16):
        for n in (16, 24, 32, 48):
            for repetition in range(2):
                values = scale * p**power * n**2 * random.lognormal(0, 0.03, (200, 8))
                table = pd.DataFrame(values, columns=list(names)).assign(kernel=kernels, rank=-1)
                experiment.add(Run({"ranks": p, "size": n}, repetition=repetition, collector="x"), table)
    model = assemble(experiment)[0]
    text = render(Context(model, sweep(model), (experiment,)))
    assert len(text.encode()) < 2_000_000
    shown = [text, *map(unzipped, Page(text).bodies["script"])]
    assert sum(each.count('class="kernel"') for each in shown) == 200
    assert sum(each.count("<tr data-series") for each in shown) == 1600


def test_the_front_recommends_a_rank_count_and_says_where_it_comes_from(
    model: Model, known: Experiment, fresh: Experiment
) -> None:
    asked = sweep(model, to=256)
    context = Context(model, asked, (known, fresh), threshold=0.5, origin={"Written": "2026-01-02 by A <b>"})
    found, against = context.recommended, context.ideal
    assert found is not None
    assert against is not None
    efficiency = against.efficiency(asked)
    at = asked.values.tolist().index(found.ranks)
    assert efficiency[at] == pytest.approx(found.efficiency)
    assert found.efficiency >= 0.5
    assert not (efficiency[at + 1 :] >= 0.5).any()
    price = cost_of(model, known).of(asked.points, 1)
    assert found.core_hours == pytest.approx(price.core_hours[at])  # as a plan counts
    page = " ".join(" ".join(Page(render(context)).texts).split())
    assert " efficiency of " in page
    assert "parallel efficiency of" not in page  # which is a factor of it, in the table below
    assert "50%" in page
    assert "2026-01-02 by A <b>" in page
    # A higher demand never recommends more ranks; one that nothing meets is said.
    strict = recommended(asked, against, 0.9)
    assert strict is None or strict.ranks <= found.ranks
    assert recommended(asked, against, 2.0) is None
    assert "No rank count" in render(Context(model, asked, (known,), threshold=1.01))
    assert recommended(asked, None) is None


def test_the_runs_to_make_next_fit_the_machine(tmp_path: Path) -> None:
    import pandas as pd

    from ranksight.core.experiment import Run
    from ranksight.model.fit import assemble

    random = np.random.default_rng(3)
    experiment = Experiment.create(tmp_path / "e", "noisy", ["ranks", "size"])
    for p in (1, 2, 4, 8):
        for n in (16, 24, 32):
            seconds = n**3 / p * 1e-4 * random.lognormal(0, 0.05)
            table = pd.DataFrame({"kernel": ["solve"], "rank": [-1], "time": [seconds]})
            experiment.add(Run({"ranks": p, "size": n}, collector="x", environment={"cores": "8"}), table)
    model = assemble(experiment)[0]
    asked = sweep(model, to=64)
    # All that eight cores hold was run: what is left is to run it more often.
    plan = Context(model, asked, (experiment,)).plan
    assert plan is not None
    assert not plan.runs
    assert [each.cause for each in plan.remedies] == ["scatter"]
    elsewhere = Context(model, asked)
    assert elsewhere.plan is not None
    assert max(run.configuration["ranks"] for run in elsewhere.plan.runs) > 8
    # The front names all of the runs, and the interval after them.
    page = " ".join(" ".join(Page(render(elsewhere)).texts).split())
    front = page[page.index("to make next") : page.index("What each of them adds")]
    assert all(f"{run.configuration['ranks']:g} ranks" in front for run in elsewhere.plan.runs)
    assert "interval is expected to be" in front
    # Runs that hardly help are not said to narrow it: neither on the front nor where functions are listed.
    status = np.zeros_like(elsewhere.plan.goal.now.status)
    goal = replace(elsewhere.plan.goal, now=replace(elsewhere.plan.goal.now, status=status))
    elsewhere.__dict__["plan"] = replace(elsewhere.plan, goal=goal, narrowing=0.001)
    page = " ".join(" ".join(Page(render(elsewhere)).texts).split())
    assert "More runs hardly help: these are expected to narrow the interval by 0.1 %" in page
    assert "These narrow" not in page
    assert "to make next" not in page


def test_the_section_of_the_document_works(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of docs/extending.md, listed and rendered as it says there."""
    text = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text()
    chapter = text.partition("## A section of the report\n")[2]
    (code,), (template, *_) = (
        re.findall(rf"```{kind}\n(.*?)```", chapter, re.DOTALL)[:1] for kind in ("python", "html")
    )
    names: dict[str, object] = {}
    exec(compile(code, "extending.md", "exec"), names)
    own = DictLoader({"metrics.html": template})
    monkeypatch.setattr(whole_page, "PackageLoader", lambda *place: ChoiceLoader([own, PackageLoader(*place)]))
    monkeypatch.setattr(
        whole_page, "SECTIONS", (*whole_page.SECTIONS, Section("metrics", "Functions", names["build"], "evidence"))
    )
    found = Page(render(Context(model, sweep(model, to=256))))
    assert any("Functions by metric" in str(each) for each in found.elements)
    assert found.texts.count("Functions") >= 1


def test_no_region_has_the_name_of_a_section() -> None:
    """Readers of the page by ear choose among them by name."""
    texts = [file.read_text() for file in (Path(whole_page.__file__).parent / "templates").glob("*.html")]
    titles = {title for text in texts for title in re.findall(r'<h2 id="[\w-]+-title">([^<{]+)<', text)}
    labels = {label for text in texts for label in re.findall(r'page\.table\("([^"]+)"', text)}
    assert {"Energy and cost", "Roofline"} <= titles
    assert labels
    assert not labels & titles
