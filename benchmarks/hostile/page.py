"""The report of a program whose 200 kernels have hostile names, in headless Chromium: no script, no request."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import socket
import subprocess
import threading
from html.parser import HTMLParser
from pathlib import Path

from benchmarks.hostile.samples import experiment
from benchmarks.settings import Skipped

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
ACT = "document.title='owned';fetch('http://hostile.invalid/f')"
PAYLOADS = (
    f"<script>{ACT}</script>", f"<img src=x onerror=\"{ACT}\">", f"<svg onload=\"{ACT}\">", f"javascript:{ACT}",
    "<link rel=stylesheet href=http://hostile.invalid/c>", "<iframe src=http://hostile.invalid/i>",
    "<base href=http://hostile.invalid/>", "<meta http-equiv=refresh content='0;url=http://hostile.invalid/m'>",
    "<style>@import 'http://hostile.invalid/s'; *{background:url(http://hostile.invalid/b)}</style>",
    f"{{{{constructor.constructor(\"{ACT}\")()}}}}", "{% raw %}${7*7}", "<!--", "]]>", "<![CDATA[", "\u2028\u2029",
    f"<details open ontoggle=\"{ACT}\">", f"<form action=javascript:{ACT}><input autofocus onfocus=\"{ACT}\">",
    "<object data=http://hostile.invalid/o>", "&lt;script&gt;", "\\u003cscript\\u003e",
)  # fmt: skip
CONTEXTS = (
    "{}", "\"{}", "'{}", "\">{}", "'>{}", "</script>{}", "</style>{}", "</title>{}", "</svg>{}", "` + {}",
)  # fmt: skip
"""What a payload comes behind, to leave the place where names are written."""
NAMES = tuple(context.format(payload) for context in CONTEXTS for payload in PAYLOADS)


ADDRESSES = frozenset({"href", "src", "srcset", "action", "formaction", "data", "poster", "background", "xlink:href"})


class _Elements(HTMLParser):
    """What of a page acts: handlers, scripts, addresses."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.acting: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        for name, value in attrs:
            leads = name in ADDRESSES and not re.match(r"#|data:image/png;base64,", value or "")
            if name.startswith("on") or leads:
                self.acting.append(f"<{tag} {name}={(value or '')[:60]}>")


class _Proxy(threading.Thread):
    """Takes down what a browser asks for, and answers nothing."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.asked: list[str] = []

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self.listening.accept()
                with one:
                    one.settimeout(2)
                    with contextlib.suppress(OSError):
                        self.asked.append(one.recv(4096).split(b"\r\n")[0].decode("utf-8", "replace"))


def show(folder: Path, names: tuple[str, ...] = NAMES) -> tuple[int, int, list[str]]:
    """Scripts of names that ran, requests, and what was found.

    Raises
    ------
    Skipped
        When there is no Chromium.
    """
    from ranksight.cli.main import main

    if not CHROMIUM:
        raise Skipped("no Chromium is found")
    folder.mkdir(parents=True)
    place = experiment(folder / "e.exp", names)
    page = folder / "page.html"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for words in (("fit", str(place), "-o", str(folder / "m.json"), "--quiet"),
                      ("report", str(folder / "m.json"), "--experiment", str(place), "-o", str(page))):  # fmt: skip
            if (code := main(list(words))) != 0:
                raise RuntimeError(f"{words[0]} of hostile names ends with {code}")
    proxy = _Proxy()
    proxy.start()
    port = proxy.listening.getsockname()[1]
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--dump-dom"]
    options += [
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=3000",
        f"--proxy-server=127.0.0.1:{port}",
    ]
    options += ["--disable-background-networking", "--no-first-run", f"file://{page}#k1"]
    done = subprocess.run([CHROMIUM, *options], capture_output=True, text=True, errors="replace", timeout=300)
    proxy.listening.close()
    if done.returncode != 0:
        raise RuntimeError(f"Chromium ends with {done.returncode}")
    elements, written = _Elements(), _Elements()
    elements.feed(done.stdout)
    written.feed(page.read_text(encoding="utf-8"))
    requests = [line for line in proxy.asked if "hostile.invalid" in line]
    found = [*elements.acting, *requests]
    ran = 0
    if "owned" in (re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL) or ["", ""])[1]:
        ran += 1
        found.append("the title was changed")
    if elements.scripts != written.scripts:
        ran += abs(elements.scripts - written.scripts)
        found.append(f"{elements.scripts} scripts in place of {written.scripts}")
    found += [line[:200] for line in done.stderr.splitlines() if "CONSOLE" in line]
    return ran + len(elements.acting), len(requests), found
