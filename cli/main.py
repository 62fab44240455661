"""Entry point: finds the verb, loads only its module, and turns errors into one line and an exit code.

What only a verb or an error needs is imported there: asking for help takes little more than starting Python.
"""

from __future__ import annotations

import os
import sys

from ranksight import __version__

TYPE_CHECKING = False  # typing itself takes a tenth of the time that Python needs to start
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from ranksight.cli._parser import Parser

VERBS: dict[str, str] = {
    "init": "write the project file, so that verbs need no arguments in a folder",
    "doctor": "show what can be measured here, what cannot, and how to enable it",
    "calibrate": "measure this node and describe it as a platform",
    "measure": "run a program over configurations and collect counters, messages and time",
    "import": "read measurements that other tools made",
    "fit": "fit every metric of every kernel as a function of the parameters",
    "phases": "find the phases that a traced program repeats, and predict its time from them",
    "predict": "predict the runtime at other ranks and sizes, with prediction intervals",
    "diagnose": "show what bounds each kernel, how it scales, and what would help",
    "check": "compare an experiment with expectations of how its functions scale",
    "plan": "list the next runs that narrow a prediction most per core-hour",
    "report": "write all results of a model, with the evidence, into one HTML file",
    "serve": "show the report of a model in a browser, answering its questions live",
    "export": "write measurements or a model for Extra-P, pandas, LaTeX or a dashboard",
    "completion": "print the script that completes verbs and options in a shell",
    "compare": "show what changed between two experiments or models, why, and at which scale it matters",
    "platforms": "list the machines described, show one, or compare two",
    "history": "follow kernels over many experiments, such as commits, and mark what changed",
    "demo": "predict bundled measurements at up to 16 times their ranks, next to what was measured there",
}
"""Verbs and what they do; each has a module of its name here, and one with its options in ``options``."""

LIGHT = frozenset({"doctor", "completion"})  # verbs that compute nothing
NO_MEMORY = ("failed to map segment", "Failed to launch worker thread", "can't start new thread")
RESUMED = frozenset({"measure"})  # verbs that go on where they were interrupted


GUIDE = """Ranksight predicts the runtime of an MPI program at rank counts and problem sizes that nobody has run.

See it work, in a minute and without MPI:
  ranksight demo

Your own program; write {ranks} and {size} where its command takes them:
  ranksight measure --ranks 1,2,4,8 --size 32,48,64 -o app.exp -- mpirun -n {ranks} ./app {size}
  ranksight fit app.exp
  ranksight predict app.exp.model.json --ranks 256,1024 --size 64 --metric time
  ranksight report app.exp.model.json -o app.html

What can be measured here: ranksight doctor. All verbs: ranksight --help."""
"""What is printed without a verb."""


HELP = """usage: ranksight [-h] [--version] VERB

Predict the runtime of an MPI program at scale from a few small runs, and show
what limits its scaling.

positional arguments:
  VERB        one of the verbs below

options:
  -h, --help  show this help message and exit
  --version   show program's version number and exit

verbs:
{verbs}

'ranksight VERB --help' explains a verb.

exit codes: 0 done, 1 bad input or failed program, 2 usage, 3 expectation violated or threshold passed,
            4 insufficient data"""


def _overview(option: str) -> str:
    """What an option in front of all verbs prints; no library of Python is loaded for it. Raises UsageError."""
    if option == "--version":
        return f"ranksight {__version__}"
    if option not in ("-h", "--help"):
        from ranksight.core.errors import UsageError

        raise UsageError(f"ranksight: unrecognized arguments: {option}", "'ranksight --help' lists what it takes")
    width = max(map(len, VERBS)) + 2
    return HELP.format(verbs="\n".join(f"  {verb:<{width}}{text}" for verb, text in VERBS.items()))


def verb_parser(verb: str) -> Parser:
    """The parser of one verb."""
    from ranksight.cli._options import declare
    from ranksight.cli._parser import Parser
    from ranksight.cli.options import options

    description, usage, table = options(verb)
    parser = Parser(prog=f"ranksight {verb}", description=description, usage=usage)
    declare(parser, table, getattr(_module(verb), "TYPES", {}))
    return parser


def _module(verb: str) -> ModuleType:
    """What carries a verb out."""
    import importlib

    return importlib.import_module("ranksight.cli." + ("import_" if verb == "import" else verb))


def _cancelled(verb: str) -> int:
    """Say what a command that was interrupted leaves, and return its exit code."""
    import contextlib

    from ranksight.cli._saying import say

    goes_on = "what was complete is kept, the same command continues from there"
    with contextlib.suppress(OSError):  # the terminal may be gone
        say(f"cancelled; {goes_on if verb in RESUMED else 'the same line starts anew'}")
    return 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    import gc
    import io
    import warnings

    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = bool(os.environ.get("RANKSIGHT_DEBUG"))
    if not debug:
        # Overflow in a hypothesis that is then discarded needs no warning; the reason of an answer names what is wrong.
        warnings.simplefilter("ignore", RuntimeWarning)
    # Modules, tables and models are kept to the end: looking for cycles among them takes a twentieth of short commands.
    gc.set_threshold(200_000, 20, 100)
    verb = "" if not given or given[0].startswith("-") else given[0]
    asked: list[int] = []
    if sys.stdout is None:  # closed by who called
        sys.stdout = io.StringIO()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a name that the encoding lacks is written as it would be in Python
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _run(given, asked)
        # A failed write is an error of this command, not one that the interpreter reports at exit.
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _cancelled(verb)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        from ranksight.core.errors import RanksightError

        if asked and not isinstance(error, (RanksightError, MemoryError, OSError)):
            return _cancelled(verb)
        if debug and not isinstance(error, MemoryError):
            raise
        return _failed(error)


def leave(code: int) -> int:
    """End the process at once; return its exit code where threads still run.

    What is registered for the end runs. Objects are not taken apart one by one: with the numerical libraries that takes
    a quarter of a short command.
    """
    import atexit

    threads = sys.modules.get("threading")
    if threads is not None and threads.active_count() > 1:
        return code
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):  # closed by who called, or a reader that is gone
            code = code or 1
    os._exit(code)


def _run(given: list[str], asked: list[int]) -> int:
    """Run the verb that is `given` and return its exit code; `asked` takes the signals that end it."""
    if not given:
        print(GUIDE)
        return 0
    verb = given[0]
    if verb.startswith("-"):
        print(_overview(verb))
        return 0
    if verb not in VERBS:
        from ranksight.core.errors import UsageError, meant

        raise UsageError(f"ranksight: no verb is named {verb!r}", f"{meant(verb, VERBS)} 'ranksight --help' lists all")
    if {"-h", "--help"}.intersection(given[: [*given, "--"].index("--")]):
        from ranksight.cli._help import page

        print(page(verb), end="")
        return 0
    from ranksight.cli._ending import ended_as_cancelled
    from ranksight.core.addressspace import load_under_limit

    with ended_as_cancelled(asked):
        parser = verb_parser(verb)
        module = _module(verb)
        arguments = _completed(verb, given[1:], parser)
        if verb not in LIGHT:
            load_under_limit()
        # A verb whose options depend on its input (parameters of a command or a model) parses its line itself.
        chosen = module.parse(parser, arguments) if hasattr(module, "parse") else parser.parse_args(arguments)
        if getattr(chosen, "verbose", False):
            from ranksight.cli._verbose import aloud

            with aloud():
                return int(module.run(chosen))
        return int(module.run(chosen))


def _completed(verb: str, words: list[str], parser: Parser) -> list[str]:
    """The words of a verb with what the project file of this folder adds."""
    from ranksight.cli._parser import PROJECT_FILE

    if not os.path.isfile(PROJECT_FILE):
        return words
    from ranksight.cli._project import completed

    return completed(verb, words, parser)


def _failed(error: Exception) -> int:
    """Say in a line what went wrong, and return the exit code."""
    import contextlib

    from ranksight.cli._saying import say
    from ranksight.core.errors import RanksightError

    if isinstance(error, RanksightError):
        # Errors of usage begin with the command line, whose first word leads every message.
        say(str(error).removeprefix("ranksight: ").removeprefix("ranksight "))
        return error.exit_code
    # Libraries have errors of their own where the loader, or one of their threads, gets no memory.
    if isinstance(error, MemoryError) or any(sign in str(error) for sign in NO_MEMORY):
        say("out of memory; use a larger node, or ask for less at once")
    elif isinstance(error, OSError):
        say(f"{error.filename or 'the answer'}: {error.strerror or error}")
        if error.filename is None:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    else:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        say(f"internal error: {what}; RANKSIGHT_DEBUG=1 shows where, please report it")
    return 1
