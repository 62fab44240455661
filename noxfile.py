"""Single commands for those who change Ranksight: ``nox -s lint``, ``test``, ``test-all``, ``bench``, ``docs``.

Each session installs requirements-dev.txt into an environment of its own. ``nox --no-venv -s test`` uses the current
environment instead and works without a network. Words after ``--`` go to the session's tool:
``nox -s test -- tests/model``, ``nox -s bench -- speed``.
"""

import os
from pathlib import Path

import nox

LOCK = "requirements-dev.txt"
EXTRAS = ("mpi", "cube", "caliper", "otf2", "test", "dev")

nox.options.sessions = ["lint", "test"]
nox.options.reuse_existing_virtualenvs = True


def install(session: nox.Session) -> None:
    """The locked versions and this tree; nothing where the session uses the current environment."""
    if session.virtualenv.venv_backend != "none":
        session.install("-r", LOCK)
        session.install("--no-deps", "-e", ".")


def pytest(session: nox.Session, *options: str) -> None:
    """Run pytest file by file on all cores, or on what the command line names."""
    install(session)
    session.run("python", "-m", "pytest", "-n", "auto", "--dist", "loadfile", *options, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, layout, types and changelog fragments."""
    install(session)
    session.run("ruff", "check", ".", external=True)
    session.run("ruff", "format", "--check", ".", external=True)
    session.run("towncrier", "build", "--draft", "--version", "next", silent=True, external=True)
    typing = Path(".typing")
    typing.mkdir(exist_ok=True)
    if not (typing / "ranksight").is_symlink():
        (typing / "ranksight").symlink_to("..")
    session.run("mypy", "--strict", "-p", "ranksight", env={"MYPYPATH": str(typing)}, external=True)


@nox.session
def test(session: nox.Session) -> None:
    """All tests but the slow ones."""
    pytest(session)


@nox.session(name="test-all")
def test_all(session: nox.Session) -> None:
    """All tests, with real campaigns and the commands of the documents."""
    os.environ["RANKSIGHT_DOCUMENTS"] = "1"
    pytest(session, "-m", "slow or not slow")


@nox.session
def coverage(session: nox.Session) -> None:
    """All tests but the slow ones; lists the lines that none of them runs."""
    pytest(session, "--cov", "--cov-report", "term-missing:skip-covered")


@nox.session
def bench(session: nox.Session) -> None:
    """Benchmarks, all or those named after ``--``; they write benchmarks/RESULTS.md."""
    install(session)
    session.run("python", "-m", "benchmarks", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Pages that are written from the program, then the site; a warning is an error."""
    install(session)
    session.run("python", "docs/generate.py")
    session.run("python", "docs/papers.py")
    if session.virtualenv.venv_backend != "none":
        session.install(".[docs]")
    session.run("python", "docs/site.py")


@nox.session
def changes(session: nox.Session) -> None:
    """The changelog's next entry from the fragments in changes/, as a draft."""
    if session.virtualenv.venv_backend != "none":
        session.install("towncrier")
    session.run("towncrier", "build", "--draft", "--version", "next", *session.posargs, external=True)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the locked versions anew, the newest that pyproject.toml allows."""
    if session.virtualenv.venv_backend != "none":
        session.install("pip-tools")
    extras = [f"--extra={each}" for each in EXTRAS]
    plain = ["--no-emit-index-url", "--no-emit-find-links", "--no-emit-trusted-host"]
    plain += ["--strip-extras", "--no-annotate", "--allow-unsafe"]
    command = ["pip-compile", "-q", "--upgrade", *extras, *plain, "-o", LOCK, "pyproject.toml"]
    session.run(*command, *session.posargs, env={"CUSTOM_COMPILE_COMMAND": "nox -s lock"}, external=True)
