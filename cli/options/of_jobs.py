"""Options of verbs that write batch jobs."""

OPTIONS = {
    "--job-time": {"type": "int", "default": 60, "metavar": "MINUTES", "help": "time limit of a job (default: 60)"},
    "--job-ranks-per-node": {
        "type": "int",
        "metavar": "N",
        "help": "ranks on each node of a job; determines the number of nodes",
    },
    "--job-option": {
        "repeat": "values",
        "metavar": "OPTION",
        "help": "directive of every job, such as --account=abc",
    },
    "--job-at-once": {
        "type": "int",
        "metavar": "N",
        "help": "largest number of tasks of a job that run at the same time",
    },
    "--job-shared": {"action": "switch", "help": "do not request whole nodes; other jobs may then disturb the times"},
    "--job-each-repetition": {
        "action": "switch",
        "help": "make each repetition a task of its own, which may run later and on other nodes",
    },
    "--job-setup": {
        "repeat": "values",
        "metavar": "LINE",
        "help": "shell line at the start of every job, such as 'module load openmpi'",
    },
}
