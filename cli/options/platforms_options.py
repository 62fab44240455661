"""List the machines that are described, show one with its sources, or compare two.

  ranksight platforms
  ranksight platforms sapphirerapids-8470
  ranksight platforms icelake-8360y sapphirerapids-8470

A platform is named, or is a file of 'ranksight calibrate'. 'predict --on PLATFORM' predicts a fitted model for it.
"""

USAGE = "ranksight platforms [PLATFORM [PLATFORM]] [options]"
OPTIONS = {
    "platforms": {
        "nargs": "*",
        "metavar": "PLATFORM",
        "help": "none: list all; one, by name or file: show it; two: compare them",
    },
    "--format": {"choices": ("table", "json"), "default": "table", "help": "format of the output (default: table)"},
    "--quiet": {"action": "store_true", "help": "print no next step"},
}
