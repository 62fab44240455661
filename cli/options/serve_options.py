"""Show the report of a model in a browser, and let its fields ask the model live.

  ranksight serve heat.model.json
  ranksight serve heat.model.json --experiment heat.exp --ranks 4096 \\
      --size 256 --port 8123

The page is that of 'ranksight report', at the printed address. Other users of the machine need the token in the
address; nothing listens on the network. From a cluster, forward the port: ssh -L 8123:127.0.0.1:8123 cluster. Ctrl-C
ends it.
"""

from ranksight.cli.options import of_pages, of_ranks

USAGE = "ranksight serve MODEL [--experiment FOLDER] [--PARAMETER VALUE]\n           [--port N] [options]"
OPTIONS = {
    "model": {"type": "path", "metavar": "MODEL", "help": "model: file of 'ranksight fit'"},
    "--port": {
        "type": "int",
        "default": 0,
        "metavar": "N",
        "help": "port of this machine to listen on (default: any free one)",
    },
    **of_pages.EXPERIMENT,
    **of_pages.PLATFORM,
    "--on": {"metavar": "PLATFORM", "help": "answer for this machine, by name or file, in place of that of the runs"},
    **of_pages.INSTRUCTIONS,
    **of_ranks.OPTIONS,
    **of_pages.DRAWN,
    **of_pages.RECOMMENDED,
    "--quiet": {"action": "store_true", "help": "print only the address"},
}
