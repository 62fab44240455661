"""Options of verbs that answer, each under its name for its place in the help of a verb."""

LEVEL = {
    "--level": {
        "type": "probability",
        "default": 0.9,
        "metavar": "P",
        "help": "probability of the intervals (default: 0.9)",
    },
}
PRICE = {
    "--price": {
        "repeat": "values",
        "metavar": "PRICE",
        "help": (
            "price of machine time or electricity: '0.02 EUR/core-hour', '1.5 EUR/node-hour', '0.3 EUR/kWh' "
            "(default: cost is not shown)"
        ),
    },
}
FORMAT = {
    "--format": {
        "choices": ("table", "json", "csv"),
        "default": "table",
        "help": "format of the output (default: table)",
    },
}
