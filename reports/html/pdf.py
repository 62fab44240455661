"""A page as PDF, printed by a Chromium that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from ranksight.core.errors import InputError
from ranksight.core.files import check_output, write_output

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = (
    *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-pdf-header-footer"),
)
TIMEOUT = 180  # seconds
SETTLED = 5000  # milliseconds of the page's own time until it is printed


def browser() -> str:
    """The program that prints.

    Raises InputError when none is installed.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise InputError(
            "no Chromium is installed, which --pdf prints with", "install chromium, or print the page from any browser"
        )
    return found


def write_pdf(page: Path, output: Path, *, force: bool = False) -> None:
    """Print the file `page` into `output`.

    Raises InputError when there is a file already and `force` is not given, or the browser fails.
    """
    program = browser()
    check_output(output, force)
    with tempfile.TemporaryDirectory(prefix="ranksight-pdf-") as folder:
        made = Path(folder) / "page.pdf"
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # which root has none of
        words = [program, *QUIET, *root, f"--user-data-dir={folder}/profile", f"--virtual-time-budget={SETTLED}"]
        words += [f"--print-to-pdf={made}", page.resolve().as_uri()]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=TIMEOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"{program} did not print {page}: {error}", "print the page from any browser") from error
        if done.returncode or not made.is_file():
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise InputError(f"{program} did not print {page}: {last}", "print the page from any browser")
        write_output(output, made.read_bytes())
