"""The page in a browser: no error, no request, tables that sort and filter, kernels that draw.

Chromium alone shows how the page is rendered; with Playwright its controls are used, with the network switched off.
"""

from __future__ import annotations

import csv
import io
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ranksight.core.errors import InputError
from ranksight.core.experiment import Experiment
from ranksight.model.fitted_model import Model
from ranksight.reports.html.context import Context
from ranksight.reports.html.page import render
from ranksight.reports.html.pdf import write_pdf
from ranksight.reports.sweep import sweep

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
QUIET = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
"""Without a sandbox, which root has none of, and without the browser's own requests."""
AXE = "axe-core@4.10"
HOSTILE = 'foo<bar<int>>::operator()<"x">&<script>alert(1)</script>'
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium is found")


@pytest.fixture(scope="module")
def page(model: Model, known: Experiment, fresh: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "report.html"
    context = Context(
        model, sweep(model, to=256), (known, fresh), commands=lambda runs, _: ["ranksight measure" for _ in runs]
    )
    file.write_text(render(context), encoding="utf-8")
    return file


def test_the_script_runs_without_an_error(page: Path, tmp_path: Path) -> None:
    words = [*QUIET, "--enable-logging=stderr", "--v=0", "--dump-dom"]
    words += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=3000", f"file://{page}#k1"]
    done = subprocess.run([CHROMIUM, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "CONSOLE" not in done.stderr
    dom = done.stdout
    assert re.search(r'<html[^>]*class="script[^"]* drawn', dom)
    opened = re.search(r'<details class="kernel" id="k1"[^>]*>(.*?)</details>', dom, re.DOTALL)
    assert opened is not None
    assert 'open=""' in opened[0][:80]
    assert opened[1].count('role="img"') == 4  # the time by its parts, and three metrics
    assert opened[1].count("<circle") >= 3 * 12
    assert re.search(
        r"<th scope=\"col\" data-name=\"Time, m?s\" class=\"num\"><button type=\"button\">Time, m?s</button>", dom
    )
    assert "<script>alert" not in dom


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as found:
        launched = found.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


@pytest.fixture
def driven(page: Path, browser: Any) -> Iterator[Any]:
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 800}, color_scheme="light")
    context.set_default_timeout(120_000)  # what a busy machine takes is no fault of the page
    tab = context.new_page()
    said: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: said.append(request.url) if request.url != f"file://{page}" else None)
    tab.on("dialog", lambda dialog: said.append(dialog.message))
    tab.goto(f"file://{page}")
    tab.locator("html.drawn").wait_for()
    yield tab
    assert said == []
    context.close()


def go(tab: Any, section: str) -> None:
    """Show the tab of a section by its link."""
    tab.click(f'nav a[href="#{section}"]')
    tab.locator(f"#{section}").wait_for()


def names(tab: Any) -> list[str]:
    rows = tab.locator("#kernels-table tbody tr:visible th")
    return [text.strip() for text in rows.all_text_contents()]


def test_tables_sort_and_filter(driven: Any) -> None:
    go(driven, "kernels")
    by_time = names(driven)
    assert by_time[0].startswith("foo::operator()")
    time = driven.locator("#kernels-table thead th", has_text="Time").first
    time.locator("button").click()
    assert time.get_attribute("aria-sort") == "descending"
    assert names(driven) == by_time
    time.locator("button").click()
    assert names(driven) == by_time[::-1]
    driven.locator("#kernels-table thead button", has_text="Kernel").click()
    assert names(driven) == sorted(by_time, key=str.lower)
    driven.fill('[data-filter="kernels-table"]', "STEADY")
    assert names(driven) == ["steady"]
    assert driven.locator('[data-count="kernels-table"]').inner_text() == "1 of 3"
    driven.fill('[data-filter="kernels-table"]', "alert(1)")
    assert len(names(driven)) == 1
    driven.fill('[data-filter="kernels-table"]', "")
    kind = driven.locator("[data-filter-column] option").nth(1).inner_text()
    # The choice addresses its column by name: another column before it displaces nothing.
    driven.evaluate(
        "for (const row of document.querySelectorAll('#kernels-table tr')) row.cells[0].after(document.createElement('td'))"
    )
    driven.select_option("[data-filter-column]", kind)
    shown = driven.locator("#kernels-table tbody tr:visible td:nth-child(5)")
    assert shown.count() > 0
    assert all(shown.nth(at).get_attribute("data-key") == kind for at in range(shown.count()))


def test_links_open_kernels_and_figures_show_values(driven: Any) -> None:
    go(driven, "kernels")
    driven.locator("#kernels-table a", has_text="steady").click()
    opened = driven.locator("details.kernel[open]")
    opened.first.wait_for()
    assert opened.count() == 1
    assert opened.locator(".name").first.inner_text() == "steady"
    assert opened.locator(".small figure > svg").count() == 4  # the time by its parts, and three metrics
    go(driven, "front")
    figure = driven.locator('[data-figure="prediction"]')
    figure.focus()
    driven.keyboard.press("ArrowLeft")
    tip = driven.locator("#tip").inner_text()
    assert "256 ranks" in tip
    assert "predicted" in tip
    driven.keyboard.press("Escape")
    assert driven.locator("#tip").is_hidden()
    figure.hover(position={"x": 700, "y": 100})
    assert driven.locator("#tip").is_visible()


def test_links_of_the_navigation_lead_to_their_sections(driven: Any) -> None:
    """Each tab is at most six screens, its link is marked, and its section is at the top."""
    for width in (390, 1280):
        driven.set_viewport_size({"width": width, "height": 500})
        driven.reload()
        for section in driven.locator("section").evaluate_all("all => all.map(each => each.id)"):
            go(driven, section)
            assert driven.locator(f'nav a[href="#{section}"]').get_attribute("aria-current") == "true"
            screens = driven.evaluate("document.documentElement.scrollHeight") / (800 if width > 390 else 844)
            assert screens <= (6 if width > 390 else 9), section
            if section in ("kernels", "communication"):
                assert 0 <= driven.locator(f"#{section}").bounding_box()["y"] < (60 if width > 390 else 200)


def test_tables_figures_and_commands_are_taken_along(driven: Any, tmp_path: Path) -> None:
    def taken(button: Any) -> tuple[str, str]:
        with driven.expect_download() as found:
            button.click()
        found.value.save_as(tmp_path / "taken")
        return found.value.suggested_filename, (tmp_path / "taken").read_text(encoding="utf-8")

    go(driven, "kernels")
    name, text = taken(driven.get_by_role("button", name="CSV: Table of verdicts"))
    assert name == "known-program-table-of-verdicts.csv"
    head, *rows = csv.reader(io.StringIO(text))
    assert [head[0], head[1].split(",")[0], head[2]] == ["Kernel", "Time", "Share"]
    assert {row[0] for row in rows} == {HOSTILE, "steady", "$x_1$ {{ 7*7 }}"}
    # Seconds and shares are numbers, not texts with a unit.
    assert sum(float(row[2]) for row in rows) == pytest.approx(1.0, abs=0.01)
    assert all(0 < float(row[1]) < 10 for row in rows)
    go(driven, "front")
    name, text = taken(driven.get_by_role("button", name="SVG: Predicted time over ranks"))
    assert name.endswith(".svg")
    drawn = ElementTree.fromstring(text)
    assert float(drawn.get("width", "0")) > 100
    assert not [part for part in drawn.iter() if part.get("class")]
    assert "predicted" in "".join(drawn.itertext())
    go(driven, "pages")
    driven.click("[data-open=first]")
    assert "rgb(0, 114, 178)" in taken(driven.locator(".small figure .take").nth(1))[1]
    go(driven, "ask")
    driven.get_by_role("button", name="Copy: ranksight").first.click()
    driven.get_by_role("button", name="Copy: ranksight").first.filter(has_text="Copied").wait_for()


def test_fields_and_sliders_answer_as_predict_or_say_so(driven: Any, model: Model) -> None:
    random = np.random.default_rng(7)
    ranks = np.round(np.exp(random.uniform(0, np.log(256), 50))).tolist()
    sizes = np.round(np.exp(random.uniform(np.log(100), np.log(400), 50))).tolist()
    truth = model.whole_time(*model.ask(np.column_stack([ranks, sizes]))).value[0]
    drawn = driven.locator("#ask-map text").all_text_contents()
    assert {"ranks", "size"} <= set(drawn)
    assert any(re.fullmatch(r"[\d.]+ m?s", text) for text in drawn)
    ask = """([p, n]) => { const line = document.getElementById("ask-time"), fields = [0, 1].map(k => document.getElementById(`ask-${k}`));
        fields[0].value = p; fields[1].value = n; fields[1].dispatchEvent(new Event("input")); return [line.dataset.time, line.dataset.marked]; }"""
    marked = 0
    for p, n, true in zip(ranks, sizes, truth, strict=True):
        time, mark = driven.evaluate(ask, [p, n])
        marked += bool(mark)
        assert mark or float(time) == pytest.approx(true, rel=0.01), (p, n)
    assert marked < 25
    for p, n in ((1e6, 100), (-3, 100), (8, 1e9), (1.5, 100)):
        time, mark = driven.evaluate(ask, [p, n])
        assert (time, mark) == ("", "yes")
    driven.fill("#ask-0", "64")
    driven.fill("#ask-1", "200")
    assert "64 ranks, size 200" in driven.locator("#ask-time").inner_text()
    assert driven.locator("#ask-command").inner_text().endswith("--ranks 64 --size 200")
    driven.locator('[data-slide="0"]').focus()
    driven.keyboard.press("Home")
    assert driven.locator("#ask-0").input_value() == "1"
    driven.locator("#ask-map .cell").last.click()
    assert driven.locator("#ask-0").input_value() == "256"
    driven.locator("#ask-kernels a", has_text="steady").click()
    driven.locator("details.kernel[open] .small figcaption", has_text="time by its parts").wait_for()


def test_the_page_is_printed_as_pdf(page: Path, tmp_path: Path) -> None:
    write_pdf(page, tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF-")
    with pytest.raises(InputError, match="exists already"):
        write_pdf(page, tmp_path / "page.pdf")


def test_dark_and_light(driven: Any) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    assert driven.evaluate(ground) == "rgb(255, 255, 255)"
    driven.click("#theme")
    assert driven.evaluate(ground) == "rgb(20, 23, 26)"
    line = "getComputedStyle(document.querySelector('#prediction .s0072b2, [data-figure=prediction] .s0072b2')).stroke"
    assert driven.evaluate(line) == "rgb(79, 168, 224)"
    driven.emulate_media(media="print")
    assert driven.evaluate(ground) == "rgb(255, 255, 255)"


def test_the_prediction_fits_a_phone(driven: Any) -> None:
    driven.set_viewport_size({"width": 390, "height": 844})
    figure = driven.locator('[data-figure="prediction"]')
    shown = figure.locator("svg >> visible=true")
    assert shown.count() == 1
    assert shown.bounding_box()["width"] <= 390
    # A letter of the axes is about as large as one of the text.
    assert shown.locator("text", has_text="256").first.bounding_box()["height"] >= 9
    figure.focus()
    driven.keyboard.press("ArrowLeft")
    assert "256 ranks" in driven.locator("#tip").inner_text()
    rule = shown.locator(".rule").bounding_box()
    assert 195 < rule["x"] < 390


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_nothing_is_wider_than_the_screen(driven: Any, width: int) -> None:
    driven.set_viewport_size({"width": width, "height": 700})
    for section in ("front", "breakdown", "kernels", "communication", "evidence", "pages"):
        go(driven, section)
        if section == "pages":
            driven.click("[data-open=first]")
        assert driven.evaluate("document.documentElement.scrollWidth") <= width, section
        clipped = "all => all.filter(each => each.checkVisibility() && each.scrollWidth > each.clientWidth + 1).length"
        assert width < 1280 or driven.locator(f"#{section} .scroll").evaluate_all(clipped) == 0, section


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The script of axe-core: the file that AXE_CORE names, otherwise installed by npm."""
    if named := os.environ.get("AXE_CORE"):
        return Path(named).read_text(encoding="utf-8")
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm to install axe-core with, and AXE_CORE does not name its axe.min.js")
    folder = tmp_path_factory.mktemp("axe")
    words = [npm, "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder), AXE]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    if done.returncode:
        pytest.skip(f"npm cannot install axe-core: {done.stderr.strip().splitlines()[-1:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_of_accessibility(page: Path, axe: str, browser: Any, scheme: str, width: int) -> None:
    context = browser.new_context(bypass_csp=True, color_scheme=scheme, viewport={"width": width, "height": 800})
    context.set_default_timeout(120_000)
    tab = context.new_page()
    tab.goto(f"file://{page}")
    tab.evaluate(axe)
    faults = {}
    for section in (
        ("front", "breakdown", "kernels", "communication", "evidence") if width > 390 else ("front", "kernels")
    ):
        go(tab, section)
        if section == "kernels":
            tab.click("[data-open=first]")
        faults[section] = [
            (fault["id"], fault["nodes"][0]["html"]) for fault in tab.evaluate("axe.run()")["violations"]
        ]
    context.close()
    assert not any(faults.values()), faults


def test_the_front_is_printed_on_one_sheet(driven: Any) -> None:
    driven.set_viewport_size({"width": 718, "height": 1047})  # A4 at 96 dots an inch, with margins of 1 cm
    driven.emulate_media(media="print")
    box = driven.locator("#front").bounding_box()
    assert 200 < box["height"] <= 1047
    assert box["width"] <= 718
    small = "<section><div class=pair><figure>first</figure><figure>second</figure></div></section>"
    driven.evaluate(f"document.getElementById('front').insertAdjacentHTML('afterend', '{small}')")
    first, second = (each.bounding_box() for each in driven.locator(".pair figure").all()[:2])
    assert first["y"] == second["y"]  # small figures are next to each other
    assert driven.locator("#pages").is_hidden()
    # A table that is wider than the sheet would be cut off.
    driven.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    widest = "Math.max(...[...document.querySelectorAll('table')].map(each => each.getBoundingClientRect().right))"
    assert driven.evaluate(widest) <= 718
