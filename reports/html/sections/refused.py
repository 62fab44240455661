"""What the model refuses to tell, why, and the run to add."""

from __future__ import annotations

from typing import Any

from ranksight.reports.answer import target_words
from ranksight.reports.html.context import Context
from ranksight.reports.refusals import next_run

TOLD = 200


def build(context: Context) -> dict[str, Any]:
    """What the template needs."""
    refused = context.refusals
    times = [refusal for refusal in refused if refusal.metric == "time"]
    return {
        "target": target_words(context.sweep),
        "count": len(refused),
        "of": len(context.model.fitted),
        "times": len(times),
        "rows": refused[:TOLD],
        "more": max(0, len(refused) - TOLD),
        "next": next_run(context.sweep),
    }
