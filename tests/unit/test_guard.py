"""The guard before the service: what it lets in, what it counts, and how it answers when something of ours breaks."""

import asyncio
import json
import logging

import pytest
from starlette.requests import ClientDisconnect, Request

from saccade.errors import UsageError
from saccade.serve.guard import Guard, Meters
from saccade.serve.limits import Limits
from saccade.serve.worker import _without

LIMITS = Limits(bytes=100, seconds=0.1)


def asked(app, *chunks, path="/v1/translate", headers=(), key=None, slow=False):
    """What the guard and an application answer to a body in chunks: status, headers, JSON."""
    sent, left = [], list(chunks)

    async def receive():
        if slow and len(left) == 1:
            await asyncio.sleep(5)
        body = left.pop(0) if left else b""
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    named = {b"host": b"localhost", **dict(headers)}
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": list(named.items())}
    asyncio.run(Guard(app, LIMITS, ["localhost"], key, Meters([]))(scope, receive, send))
    start = sent[0]
    body = b"".join(m.get("body", b"") for m in sent[1:])
    return start["status"], dict(start["headers"]), json.loads(body)


async def echo(scope, receive, send):
    """Says how long the body was; whatever happens while it reads is its own error, as in a framework."""
    try:
        size = len(await Request(scope, receive).body())
    except Exception:
        size, status = 0, 400
    else:
        status = 200
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps({"size": size}).encode()})


def test_a_body_is_counted_as_it_comes():
    assert asked(echo, b"x" * 60, b"y" * 40)[::2] == (200, {"size": 100})
    for headers in ((), [(b"content-length", b"3"), (b"transfer-encoding", b"chunked")]):
        status, _, told = asked(echo, b"x" * 60, b"y" * 60, headers=headers)
        assert (status, told["error"]["limit"]) == (413, "bytes")  # whatever the headers say


def test_a_body_is_not_waited_for_without_end():
    status, _, told = asked(echo, b"x", b"y", slow=True)
    assert (status, told["error"]["code"], told["error"]["limit"]) == (408, "too_slow", "seconds")


def test_too_many_at_a_time_are_told_so_as_json():
    async def scene():
        waiting, told = asyncio.Event(), []

        async def slow(scope, receive, send):
            await waiting.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message):
            told.append(message)

        guarded = Guard(slow, Limits(requests=2), ["localhost"], None, Meters([]))
        scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": [(b"host", b"localhost")]}
        inside = [asyncio.create_task(guarded(dict(scope), None, send)) for _ in range(2)]
        await asyncio.sleep(0)
        await guarded(dict(scope), None, send)
        assert told[0]["status"] == 503
        assert json.loads(told[1]["body"])["error"]["limit"] == "requests"
        waiting.set()
        await asyncio.gather(*inside)
        await guarded(dict(scope), None, send)  # and there is room again
        assert [m["status"] for m in told if "status" in m] == [503, 200, 200, 200]

    asyncio.run(scene())


def test_limits_are_the_operators():
    limits = Limits.given(["characters=20000", "seconds=2.5"])
    assert (limits.characters, limits.seconds, limits.beam) == (20000, 2.5, Limits().beam)
    for wrong, says in (
        ("charcters=3", "did you mean 'characters'"),
        ("beam=many", "NAME=NUMBER"),
        ("beam=0", "above 0"),
    ):
        with pytest.raises(UsageError, match=says):
            Limits.given([wrong])


@pytest.mark.parametrize(
    "host", ["localhost:1/docs?", "localhost:8000/healthz?", "localhost#", "evil.example", "", "localhost:x"]
)
def test_a_host_is_a_name_and_a_port(host):
    status, _, told = asked(echo, b"", headers=[(b"host", host.encode())], key="secret")
    assert (status, told["error"]["code"]) == (421, "wrong_host")


def test_a_host_has_no_case_and_a_key_is_asked_for():
    assert asked(echo, b"", headers=[(b"host", b"LocalHost:80")])[0] == 200
    assert asked(echo, b"", headers=[(b"host", b"localhost:80")], key="secret")[0] == 401
    assert asked(echo, b"", key="secret", path="/healthz")[0] == 200


def test_an_error_of_ours_is_answered_logged_and_tells_nothing(caplog):
    async def breaks(scope, receive, send):
        raise RuntimeError("what a client wrote")

    with caplog.at_level(logging.INFO, "saccade.serve"):
        status, headers, told = asked(breaks, b"")
    assert (status, told["error"]["code"]) == (500, "internal")
    assert headers[b"x-content-type-options"] == b"nosniff"
    lines = [json.loads(record.getMessage()) for record in caplog.records]  # one line each, all of them JSON
    assert lines[0]["error"] == "RuntimeError"
    assert lines[0]["id"] == lines[1]["id"] == headers[b"x-request-id"].decode()
    assert "what a client wrote" not in caplog.text


def test_who_leaves_while_the_body_comes_is_no_error_of_ours(caplog):
    async def leaves(scope, receive, send):
        raise ClientDisconnect

    async def send(message):
        raise AssertionError("nobody is there")

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/translate",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    with caplog.at_level(logging.INFO, "saccade.serve"):
        asyncio.run(Guard(leaves, LIMITS, ["localhost"], None, Meters([]))(scope, None, send))
    assert [json.loads(record.getMessage())["status"] for record in caplog.records] == [499]


def test_a_client_learns_no_path(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    assert _without([str(run)], f"{run}/model.safetensors: cannot be read") == "model.safetensors: cannot be read"
    assert _without([f"{run}/"], f"{run}: no run") == "run: no run"
