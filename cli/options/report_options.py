"""Write all results of a model into one HTML file that needs no network.

  ranksight report heat.model.json --experiment heat.exp -o heat.html
  ranksight report heat.model.json --experiment heat.exp \\
      --experiment larger.exp --ranks 4096 --size 256
  ranksight report heat.model.json -o heat.html --pdf heat.pdf

The page has fields and sliders for other rank counts and sizes. Its front shows in a sentence what the model predicts
at the target, which rank count is worth its core-hours, what limits scaling and how far the prediction can be trusted.
Tabs hold the parts of the time, all kernels, communication, platform, what is not predicted, and the evidence.
--PARAMETER VALUE sets the target: without it, the farthest of 1 to 16 times the most ranks measured that the data
support, with the next one beyond it shown as insufficient, and the largest measured value of the others. The experiment
that the model was made of adds its measured points where it is next to the model; configurations of others, that the
model was not fitted to, are held against it. Exit code 4
when nothing is predicted at the target.
"""

from ranksight.cli.options import of_pages, of_ranks

USAGE = "ranksight report MODEL [-o FILE] [--experiment FOLDER]\n           [--PARAMETER VALUE] [options]"
OPTIONS = {
    "model": {"type": "path", "metavar": "MODEL", "help": "model: file of 'ranksight fit'"},
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "FILE",
        "help": "file of the report (default: MODEL with .html)",
    },
    "--pdf": {
        "type": "path",
        "metavar": "FILE",
        "help": "print the page into this file too, by an installed Chromium",
    },
    **of_pages.EXPERIMENT,
    "--expectations": {
        "type": "path",
        "metavar": "FILE",
        "help": "compare the first experiment with these expectations, as 'check' does",
    },
    "--on": {"metavar": "PLATFORM", "help": "report for this machine, by name or file, in place of that of the runs"},
    **of_pages.INSTRUCTIONS,
    **of_ranks.OPTIONS,
    **of_pages.PLATFORM,
    **of_pages.DRAWN,
    "--author": {"default": "", "help": "author, shown on the front page"},
    **of_pages.RECOMMENDED,
    "--format": {
        "choices": ("table", "json", "csv"),
        "default": "table",
        "help": "format of the summary (default: table)",
    },
    "--force": {"action": "store_true", "help": "replace an existing output file"},
    "--quiet": {"action": "store_true", "help": "print only errors"},
}
