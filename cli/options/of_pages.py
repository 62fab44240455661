"""Options of verbs that draw a page of a model, each under its name for its place in the help of a verb."""

from ranksight.cli.options import of_answers

EXPERIMENT = {
    "--experiment": {
        "action": "append",
        "type": "path",
        "default": [],
        "metavar": "FOLDER",
        "help": (
            "measured runs to show, fitted to or not; may be repeated (default: those of the model, next to its file)"
        ),
    },
}
PLATFORM = {
    "--platform": {"metavar": "NAME", "help": "machine to describe, by name or file; the model keeps that of 'fit'"},
}
INSTRUCTIONS = {
    "--instructions": {
        "type": "float",
        "metavar": "RATIO",
        "help": "instructions that the program needs on the machine of --on over those of the runs (default: 1)",
    },
}
DRAWN = {
    "--along": {"metavar": "PARAMETER", "help": "parameter to draw over (default: ranks, if they varied)"},
    "--title": {"help": "title of the page"},
}
RECOMMENDED = {
    "--efficiency": {
        "type": "float",
        "default": 0.7,
        "metavar": "E",
        "help": "least efficiency of the recommended rank count (default: 0.7)",
    },
    **of_answers.PRICE,
    **of_answers.LEVEL,
}
"""What the recommended rank count follows from."""
