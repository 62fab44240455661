"""The page: sections put together with their styles and script, under a policy that lets nothing else run or load."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ranksight import __version__
from ranksight.core.files import check_output, write_output
from ranksight.core.names import printable
from ranksight.core.records import dataclass
from ranksight.reports.formula import readable
from ranksight.reports.html import writing
from ranksight.reports.html.context import Context
from ranksight.reports.html.figures import dark_rules
from ranksight.reports.html.sections import SECTIONS, Section

STYLES = ("page.css", "ask.css", "tables.css", "figures.css", "kernels.css")
SCRIPTS = ("theme.js", "tabs.js", "take.js", "tables.js", "hover.js", "numbers.js", "ask.js", "kernels.js")


@dataclass(frozen=True)
class Part:
    """A section of a page other than the report: its template is ``<id>.html``."""

    id: str
    title: str
    tab: str = ""  # without one, all parts of a page are shown at once


def render(context: Context, title: str | None = None) -> str:
    """The report as one HTML document."""
    built = [(section, section.build(context)) for section in SECTIONS]
    return put_together(
        title or f"{writing.whole(context.model.application) or 'program'}: predicted performance",
        [(section, data) for section, data in built if data is not None],
        context.kernels,
        context.numbers,
        context=context,
    )


def put_together(
    title: str,
    sections: Sequence[tuple[Section | Part, Mapping[str, Any]]],
    kernels: Sequence[str],
    numbers: Mapping[str, int] | None = None,
    **more: Any,
) -> str:
    """A page of sections as one HTML document.

    Parameters
    ----------
    sections : sequence of (section, data)
        A section has an `id`, whose template is ``<id>.html``, and a `title`; ``figures`` of its data are its figures.
    kernels : sequence of str
        Names that are written distinct from each other.
    numbers : mapping of str to int, optional
        Number of the page of each kernel that has one.
    more
        Given to the templates.
    """
    environment = Environment(
        loader=PackageLoader("ranksight.reports.html", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        # Names of others stand in sentences too; what is markup has been looked through where it was made.
        finalize=lambda said: printable(said) if type(said) is str else said,
    )
    environment.filters |= {
        "shown": writing.shower(kernels),
        "whole": writing.whole,
        "percent": writing.percent,
        "formula": readable,
        "size": writing.size,
        "embed": writing.embed,
        "packed": writing.packed,
        "plural": lambda count, one, many=None: f"{count:,} {one if count == 1 else many or one + 's'}",
    }
    figures = {figure.id: figure.hover for _, data in sections for figure in data.get("figures", ()) if figure.hover}
    style = _read(STYLES) + _dark()
    script = _read(SCRIPTS)
    return environment.get_template("page.html").render(
        title=title,
        version=__version__,
        numbers=numbers or {},
        sections=sections,
        figures=figures,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script, live=bool(more.get("context") and more["context"].live)),
        Markup=Markup,
        **more,
    )


def write(page: str, path: Path, *, force: bool = False) -> None:
    """Write the page atomically.

    Raises InputError when there is a file already and `force` is not given, or it cannot be written.
    """
    check_output(path, force)
    write_output(path, page)


def _read(names: tuple[str, ...]) -> str:
    folder = resources.files("ranksight.reports.html") / "templates"
    return "".join((folder / name).read_text(encoding="utf-8") for name in names)


def _dark() -> str:
    return (
        "@media screen{" + dark_rules('[data-theme="dark"]') + "}"
        "@media screen and (prefers-color-scheme:dark){" + dark_rules(':root:not([data-theme="light"])') + "}"
    )


def _policy(style: str, script: str, live: bool) -> str:
    """Policy that allows only the page's own style and script, by their hashes; a live page may ask its server, too."""

    def hashed(text: str) -> str:
        return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"

    rules: dict[str, Any] = {
        "default-src": "'none'",
        "script-src": hashed(script),
        "style-src": hashed(style),
        "img-src": "data:",
        **({"connect-src": "'self'"} if live else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())
