"""Measure this node and describe it as a platform file.

  ranksight calibrate -o my.toml
  ranksight calibrate -o my.toml --quick
  ranksight calibrate -o my.toml --network -- mpirun -n 2

Topology comes from the system. Small C programs, compiled here, measure the clock and the latency of every cache level
and of memory. They also measure the part of the last cache that the cores use, and the bandwidth of one to all cores of
a ccNUMA domain.
Run it on an idle node, in a job that has the node for itself. With --network the LogGP parameters of messages between
two ranks are measured, piecewise over the message size. The launcher after '--' places the ranks on one node or on
two; the parameters are written into the file's [network.intra] or [network.inter]. An existing file is completed.
Every value in the file has its source; edit what you know better. 'ranksight fit EXPERIMENT --platform' takes the
file, or the name of a machine that is described already ('--list'); so does any other verb with --platform.
"""

USAGE = "ranksight calibrate [options] [-- LAUNCHER]"
OPTIONS = {
    "--output": {
        "short": "-o",
        "type": "path",
        "metavar": "FILE",
        "help": "platform file to write (default: the host's name with .toml)",
    },
    "--name": {"metavar": "NAME", "help": "name of the platform (default: that of the file)"},
    "--quick": {"action": "store_true", "help": "take fewer samples: faster, but less precise"},
    "--samples": {
        "type": "path",
        "metavar": "FILE",
        "help": "write all samples as JSON for 'pyperf stats' and 'pyperf hist'",
    },
    "--network": {"action": "store_true", "help": "measure messages between two ranks that LAUNCHER starts"},
    "--timings": {
        "action": "append",
        "type": "path",
        "metavar": "PATH",
        "help": "fit the network to existing timings: CSV (op,bytes,start,duration) or an imported experiment",
    },
    "--level": {
        "choices": ("intra", "inter"),
        "default": "inter",
        "help": "where --timings were measured: inside a node or between nodes (default: inter)",
    },
    "--seconds": {
        "type": "float",
        "default": 20.0,
        "metavar": "S",
        "help": "time for measuring the network, in seconds (default: 20)",
    },
    "--largest": {
        "type": "size",
        "default": 4194304,
        "metavar": "SIZE",
        "help": "largest message, in bytes (default: 4Mi)",
    },
    "launcher": {
        "nargs": "*",
        "metavar": "LAUNCHER",
        "help": "after '--': launcher with its options for two ranks, without a program",
    },
    "--list": {"action": "store_true", "help": "list the described machines and exit"},
    "--format": {"choices": ("table", "json"), "default": "table", "help": "format of the output (default: table)"},
    "--force": {"action": "store_true", "help": "replace existing files"},
    "--quiet": {"action": "store_true", "help": "print no progress and no summary"},
}
