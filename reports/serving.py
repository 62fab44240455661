"""The report's page over HTTP, on this machine alone: its fields ask the model live.

Only the loopback interface is listened on, every request needs the token that is in the printed address, and the name
that a request is made to has to be that of the loopback: a page from elsewhere in the same browser reaches nothing.
"""

from __future__ import annotations

import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ranksight.core.errors import InputError, RanksightError
from ranksight.reports.html.context import Context
from ranksight.reports.html.page import render
from ranksight.reports.html.sections.ask import live_answer

HOST = "127.0.0.1"
FIELDS = 64  # of a query


class Server(ThreadingHTTPServer):
    """Serves one report; `url` is where it is, with its token."""

    daemon_threads = True

    def __init__(self, context: Context, port: int = 0, title: str | None = None) -> None:
        """Listen on `port` of the loopback, any free one where it is 0. Raises InputError when it is used."""
        self.context, self.token, self.turn = context, secrets.token_urlsafe(24), threading.Lock()
        self.page = render(context, title).encode("utf-8")
        try:
            super().__init__((HOST, port), _Request)
        except (OSError, OverflowError) as error:
            cause = str(getattr(error, "strerror", None) or error).rstrip(".")
            raise InputError(f"port {port} of {HOST} cannot be used: {cause}", "name another one, or none") from error

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"

    def answer(self, fields: dict[str, str]) -> dict[str, Any]:
        """The model's answer at the values of `fields`, or what is wrong with them."""
        try:
            values = {name: float(text) for name, text in fields.items()}
        except ValueError:
            return {"error": "a value is not a number"}
        try:
            with self.turn:  # a model remembers its last answers
                return live_answer(self.context, values)
        except RanksightError as error:
            return {"error": str(error)}


class _Request(BaseHTTPRequestHandler):
    """One request: the page, or an answer."""

    server: Server
    timeout = 20
    server_version, sys_version = "ranksight", ""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        try:
            fields = dict(parse_qsl(address.query, max_num_fields=FIELDS))
        except ValueError:
            fields = {}
        token = fields.pop("token", "")
        names = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host") not in names:
            self._send(HTTPStatus.MISDIRECTED_REQUEST, b"not the name of this server", "text/plain")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(HTTPStatus.FORBIDDEN, b"open the printed address: it holds the token", "text/plain")
        elif address.path == "/":
            self._send(HTTPStatus.OK, self.server.page, "text/html; charset=utf-8")
        elif address.path == "/answer":
            self._send(HTTPStatus.OK, json.dumps(self.server.answer(fields)).encode(), "application/json")
        else:
            self._send(HTTPStatus.NOT_FOUND, b"there is the page alone", "text/plain")

    def _send(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {
            "Content-Type": kind,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Content-Security-Policy": "frame-ancestors 'none'",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: addresses hold the token."""
