"""What objects show in notebooks: small tables for ``_repr_html_``, escaped, and plots."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from ranksight.core.names import printable

MOST = 20


def table(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]], most: int = MOST, note: str = ""
) -> str:
    """A table with its caption; rows beyond `most` are counted, columns without content are not shown.

    `rows`: cells, written by ``str``. `note`: said below.
    """
    shown = [at for at in range(len(heads)) if not rows or any(str(row[at]) for row in rows[:most])]
    lines = [f"<table><caption>{_text(caption)}</caption><thead><tr>"]
    lines += [f'<th scope="col">{_text(heads[at])}</th>' for at in shown]
    lines.append("</tr></thead><tbody>")
    for row in rows[:most]:
        lines.append("<tr>" + "".join(f"<td>{_text(row[at])}</td>" for at in shown) + "</tr>")
    lines.append("</tbody></table>")
    more = [f"and {len(rows) - most} more"] if len(rows) > most else []
    said = "; ".join([*more, *([note] if note else [])])
    return "".join(lines) + (f"<p>{_text(said)}</p>" if said else "")


def drawn(plot: str, *what: Any, ax: Any = None, **settings: Any) -> Any:
    """Draw with a function of :mod:`ranksight.reports.plots`, by name: plots stand above what is drawn.

    Without axes a new figure of pyplot is used, which notebooks show by themselves and ``plt.show()`` elsewhere. The
    axes are returned.
    """
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(9.0, 4.2), layout="constrained")
    return getattr(importlib.import_module("ranksight.reports.plots"), plot)(*what, ax=ax, **settings)


def _text(value: object) -> str:
    """Text that stands for itself."""
    from html import escape  # with a table of all names of characters, which few commands write

    return escape(printable(str(value)))
