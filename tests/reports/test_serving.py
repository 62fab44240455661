"""The page over HTTP: who is answered, and what."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ranksight.core.errors import InputError
from ranksight.model.fitted_model import Model
from ranksight.reports.html.context import Context
from ranksight.reports.serving import HOST, Server
from ranksight.reports.sweep import sweep


@pytest.fixture(scope="module")
def server(model: Model) -> Iterator[Server]:
    with Server(Context(model, sweep(model, to=64), live=True)) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield made
        made.shutdown()


def get(server: Server, path: str, host: str = "", method: str = "GET") -> tuple[int, str, dict[str, Any]]:
    connection = http.client.HTTPConnection(HOST, server.server_port, timeout=20)
    connection.request(method, path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), dict(answer.getheaders())


def test_the_page_may_ask_its_server_and_nothing_else(server: Server) -> None:
    status, page, heads = get(server, server.url.split(str(server.server_port))[1])
    assert status == 200
    assert "connect-src &#39;self&#39;" in page
    assert '"live":true' in page
    assert server.token not in page
    assert heads["Cache-Control"] == "no-store"


def test_a_question_is_answered_by_the_model(server: Server, model: Model) -> None:
    _, text, _ = get(server, f"/answer?token={server.token}&ranks=24&size=150")
    found = json.loads(text)
    table = model.predict(ranks=24, size=150, metrics="time", kernels="(whole program)").table()
    assert found["time"] == pytest.approx(table["value"].iloc[0], rel=1e-12)


@pytest.mark.parametrize(
    "query", ["ranks=0&size=1", "ranks=x&size=1", "ranks=8", "ranks=8&size=1e400", "ranks=nan&size=1", ""]
)
def test_bad_questions_get_a_line(server: Server, query: str) -> None:
    status, text, _ = get(server, f"/answer?token={server.token}&{query}")
    assert status == 200
    assert len(json.loads(text)["error"].splitlines()) == 1


def test_others_get_nothing(server: Server) -> None:
    good = f"/?token={server.token}"
    assert get(server, "/")[0] == 403
    assert get(server, "/answer?token=wrong&ranks=8&size=100")[0] == 403
    assert get(server, good, host="attacker.example")[0] == 421
    assert get(server, good, method="POST")[0] == 501
    assert get(server, f"/../etc/passwd?token={server.token}")[0] == 404


def test_a_used_port_is_named(server: Server) -> None:
    with pytest.raises(InputError, match=f"port {server.server_port} of 127.0.0.1 cannot be used"):
        Server(server.context, server.server_port)
