"""Show what can be measured here and what cannot, why, and how to enable it.

  ranksight doctor
  ranksight doctor --format json

Nothing is changed. The exit code is always 0: a machine without counters is no error.
"""

USAGE = "ranksight doctor [options]"
OPTIONS = {
    "--format": {"choices": ("table", "json"), "default": "table", "help": "format of the output (default: table)"},
    "--quiet": {"action": "store_true", "help": "print only what does not work"},
}
