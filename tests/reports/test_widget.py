"""The widget: what it asks the model, and what its script shows."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from notebook_packages import import_anywidget

import ranksight as rs
from ranksight.core.errors import ToolError
from ranksight.model.fitted_model import Model
from ranksight.reports.widget import SCRIPT, answer, fields_of

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")


def test_it_answers_as_predict(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    import_anywidget(monkeypatch)
    made = rs.widget(model)
    assert made.asked == {"ranks": 16.0, "size": 200.0}
    made.asked = {"ranks": 128, "size": 150}
    table = model.predict(ranks=128, size=150, metrics="time", kernels="(whole program)").table()
    assert made.answer["time"] == pytest.approx(table["value"].iloc[0], rel=1e-12)
    assert made.answer["high"] == pytest.approx(table["upper"].iloc[0], rel=1e-12)
    made.asked = {"ranks": 1.5, "size": 150}
    assert made.answer["time"] is None
    assert "whole numbers" in made.answer["reason"]


def test_without_anywidget_the_extra_is_named(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "anywidget", None)
    with pytest.raises(ToolError, match=r"anywidget is not installed"):
        rs.widget(model)


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is found")
def test_its_script_shows_the_answer_and_sends_what_is_asked(model: Model) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    state: dict[str, Any] = {"title": "known <b>", "fields": fields_of(model), "parts": [["unknown", "#999999"]]}
    state |= {"asked": {"ranks": 16, "size": 200}, "answer": answer(model, {"ranks": 16, "size": 200}, 0.9)}
    run = """async ([script, state]) => {
        const { default: widget } = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
        window.sent = [];
        const model = { get: (name) => state[name], set: (name, value) => window.sent.push([name, value]), save_changes() {}, on() {}, off() {} };
        widget.render({ model, el: document.body });
    }"""
    with playwright.sync_playwright() as found:
        browser = found.chromium.launch(executable_path=CHROMIUM, args=["--headless", "--no-sandbox", "--disable-gpu"])
        tab = browser.new_page()
        tab.evaluate(run, [SCRIPT.read_text(encoding="utf-8"), state])
        shown = tab.locator("body").inner_text()
        tab.locator('input[type="range"]').first.press("Home")
        tab.wait_for_function("window.sent.length > 0")
        sent = tab.evaluate("window.sent.at(-1)")
        browser.close()
    assert "known <b>" in shown
    assert f"{1e3 * state['answer']['time']:.3g} ms" in shown
    assert "steady" in shown
    assert sent == ["asked", {"ranks": 1, "size": 200}]
