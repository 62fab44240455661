"""What came of a campaign of runs, as it is said at its end."""

from __future__ import annotations

from ranksight.campaign.measuring import FAILURES_IN_A_ROW, Outcome
from ranksight.cli._lines import shell_line
from ranksight.cli._saying import say, say_first, warn
from ranksight.core.experiment import Experiment
from ranksight.core.leftout import warning
from ranksight.reports.terminal import Text, next_step, show


def report(experiment: Experiment, outcome: Outcome, quiet: bool) -> int:
    """Say what came of a campaign; 1 when a run failed."""
    warn(warning(experiment))
    reported: set[tuple[str, ...]] = set()
    causes: set[str] = set()
    for failure in outcome.failures:
        if failure.what in causes and not failure.last_lines:
            say(f"run {failure.run.id} failed as one before")
            continue
        causes.add(failure.what)
        say(f"run {failure.run.id} failed: {failure.what}")
        if failure.last_lines and failure.last_lines in reported:
            say("(the same as before)", "  | ")
        else:
            reported.add(failure.last_lines)
            for line in failure.last_lines:
                say(line, "  | ")
        if failure.remedy:
            say(failure.remedy, "  ")
        stands = failure.folder.exists()
        say(f"its output is kept in {failure.folder}" if stands else "there was no room to keep its output", "  ")
    say_first("warning", outcome.warnings, "warnings")
    if outcome.stopped:
        say("stopped, the last runs failed one after another; remove the cause and give the same command again")
    elif outcome.left_out:
        say(
            f"left out after {FAILURES_IN_A_ROW} failures one after another: {', '.join(outcome.left_out)}; "
            "remove the cause and give the same command again"
        )
    elif outcome.failures:
        say("give the same line again to measure what is missing")
    if not quiet:
        kept = f", {outcome.kept} kept from before" if outcome.kept else ""
        show(
            Text(
                f"{outcome.measured} runs measured{kept}, {len(outcome.failures)} failed: {experiment.path}", hanging=0
            )
        )
        if len(experiment) and not outcome.stopped:
            show(next_step(shell_line("ranksight", "fit", experiment.path)))
    return 1 if outcome.failures else 0
