"""The service as a process: its answers, its limits, who may ask, and what happens when things die."""

import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from libretranslatepy import LibreTranslateAPI
from PIL import Image
from schemathesis.specs.openapi import checks as conformance
from services import started, until_ready

import saccade
from saccade.data import TASKS

pytestmark = pytest.mark.filterwarnings("ignore")
JSON = {"Content-Type": "application/json"}


@schemathesis.serializer("application/x-ndjson", "image/*")
def as_bytes(context, value):
    if isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else json.dumps(value, default=str)).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def service(letters):
    with started(letters, "--langs", "en-de") as (_, client):
        yield client


def workers(client) -> list[int]:
    """The processes that own the models: children of the one that serves."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"serve" in words and str(client.base_url.port).encode() in words:
                children = (entry / "task" / entry.name / "children").read_text().split()
                return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        except OSError:
            continue  # it has just ended
    return []


def test_one_answer_for_each_text_in_order_as_the_model_gives_it(service, letters):
    texts = ["a b c", "", "z", *(p.source for p in TASKS["copy"].pairs("test", size=40))]
    answer = service.post("/v1/translate", json={"texts": texts, "attention": True}).json()
    alone = saccade.load(letters)(texts)
    assert answer["model"] == "letters"
    assert [p["text"] for p in answer["predictions"]] == [p.text for p in alone]
    assert answer["predictions"][0]["attention"]["cross"]
    assert "attention" not in service.post("/v1/translate", json={"texts": ["a"]}).json()["predictions"][0]


def test_a_given_target_is_aligned(service):
    (told,) = service.post("/v1/align", json={"pairs": [{"source": "a b", "target": "c d"}]}).json()["predictions"]
    assert told["text"] == "c d"
    assert len(told["attention"]["cross"][0][0]) == len(told["target_tokens"])


def test_what_one_pair_cannot_do_fails_for_that_pair_alone(service):
    pairs = [{"source": "a b c", "target": "a b c"}, {"source": "a", "target": "a"}]
    steered = service.post("/v1/align", json={"pairs": pairs, "steer": {"word": 0, "places": [3]}}).json()[
        "predictions"
    ]
    assert steered[0]["attention"]["cross"][0][0][0][3] == pytest.approx(1)
    assert "but there are" in steered[1]["error"]["message"]


@pytest.mark.parametrize(
    ("asked", "status", "limit"),
    [
        ({"texts": ["a"], "beam": 11}, 422, "beam"),
        ({"texts": ["a"], "beam": 5, "nbest": 11}, 422, "nbest"),
        ({"texts": ["a"] * 129}, 422, "texts"),
        ({"texts": ["a" * 5001]}, 422, "characters"),
        ({"texts": ["a" * 1_000_001]}, 413, "bytes"),
        ({"texts": ["a"], "model": "none"}, 404, None),
        ({"texts": ["a"], "bean": 3}, 422, None),
        ({"texts": "a"}, 422, None),
        ({"texts": ["a"], "seed": 3}, 422, None),
    ],
)
def test_a_refusal_names_the_limit(service, asked, status, limit):
    response = service.post("/v1/translate", json=asked)
    assert response.status_code == status
    error = response.json()["error"]
    assert error.get("limit") == limit
    assert error["message"]
    if limit:
        assert error["most"] == service.get("/v1/limits").json()[limit]


def test_lines_in_lines_out(service):
    texts = [p.source for p in TASKS["copy"].pairs("test", size=300)]
    lines = [json.dumps(t) if i % 2 else json.dumps({"text": t}) for i, t in enumerate(texts)]
    lines[7] = "no json"
    got = service.post("/v1/stream", content="\n".join(lines)).text.splitlines()
    assert len(got) == 300
    assert json.loads(got[7])["error"]["code"] == "wrong_input"
    whole = service.post("/v1/translate", json={"texts": texts[:7]}).json()["predictions"]
    assert [json.loads(line)["text"] for line in got[:7]] == [p["text"] for p in whole]


def test_only_those_who_are_meant(service):
    assert service.get("/v1/models", headers={"Host": "evil.example"}).status_code == 421
    assert service.get("/v1/models", headers={"Origin": "http://evil.example"}).status_code == 403
    answer = service.get("/v1/models")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_what_stands_beside(service):
    assert "saccade_batch_texts_count" in service.get("/metrics").text
    page = service.get("/docs").text
    assert "/v1/translate" in page
    assert "<code>application/x-www-form-urlencoded</code> or <code>multipart/form-data</code>" in page  # told once
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert service.get("/nothing").json()["error"]["code"] == "not_found"
    assert service.head("/healthz").status_code == 200
    assert service.post("/v1/caption", content=b"x").status_code == 404  # no model here reads pictures


def test_clients_of_libretranslate_work_unchanged(service, letters):
    client = LibreTranslateAPI(str(service.base_url))
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert client.translate("a b c", "en", "de") == saccade.load(letters)("a b c").text
    assert client.detect("hello")[0]["language"] == "en"
    wrong = service.post("/translate", json={"q": "a", "source": "en", "target": "xx"})
    assert wrong.status_code == 400
    assert wrong.json() == {"error": "en to xx is not supported (en to de)"}
    both = service.post("/translate", json={"q": ["a", "b"], "source": "auto", "target": "de"}).json()
    assert len(both["translatedText"]) == 2


@pytest.mark.parametrize(
    "more", [{"source": "\ud800"}, {"target": "\ud800"}, {"alternatives": "9" * 5000}, {"api_key": "\ud800"}]
)
def test_strange_fields_of_libretranslate_are_refused(service, more):
    asked = {"q": "a", "source": "en", "target": "de", **more}
    told = service.post("/translate", content=json.dumps(asked), headers=JSON)
    assert told.status_code == (200 if "api_key" in more else 400)


def test_what_libretranslate_cuts_is_said(service):
    told = service.post("/translate", json={"q": ["a", "a " * 2000], "source": "en", "target": "de"}).json()
    assert told["cut"] == [1]


def test_who_leaves_is_not_worked_for(service):
    """A stream of many lines, and a request of LibreTranslate: both are left at once."""

    def done() -> float:
        found = re.search(r'saccade_batch_texts_sum{model="letters"} ([\d.e+]+)', service.get("/metrics").text)
        return float(found[1])

    text, before = " ".join("abcdefghij" * 12), done()
    lines = (json.dumps(text) + "\n").encode() * 600
    asked = json.dumps({"q": [text] * 128, "source": "en", "target": "de"}).encode()
    for path, body in (("/v1/stream?beam=10", lines), ("/translate", asked)):
        with socket.create_connection((service.base_url.host, service.base_url.port)) as client:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            time.sleep(0.3)
    for _ in range(100):  # until what was under way is done
        now = done()
        time.sleep(1)
        if done() == now:
            break
    assert done() - before < 400  # of 728


CHECKS = [
    schemathesis.checks.not_a_server_error,
    conformance.status_code_conformance,
    conformance.content_type_conformance,
    conformance.response_schema_conformance,
]


def test_no_request_makes_it_fail_or_answer_otherwise_than_it_says(service):
    """Whatever its own schema allows, and what it does not, is answered as the schema says; never with an error of ours."""
    schema = schemathesis.openapi.from_dict(service.get("/openapi.json").json())
    schema.config.base_url = str(service.base_url)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if "reload" in operation.path:
            continue
        modes = schemathesis.GenerationMode
        asked = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in (modes.POSITIVE, modes.NEGATIVE)))

        @settings(max_examples=15, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(asked)
        def answers(case):
            case.call_and_validate(checks=CHECKS)

        answers()
        tried += 1
    assert tried >= 9


def test_a_model_is_loaded_anew_without_a_gap(service):
    before = workers(service)
    with ThreadPoolExecutor(5) as pool:
        asked = [pool.submit(service.post, "/v1/translate", json={"texts": ["a b"] * 20}) for _ in range(20)]
        assert service.post("/v1/models/letters/reload").status_code == 200
        asked += [pool.submit(service.post, "/v1/translate", json={"texts": ["a b"]}) for _ in range(5)]
        assert {a.result().status_code for a in asked} == {200}
    assert workers(service) != before


def test_a_model_that_is_killed_loses_nothing_silently(letters):
    with started(letters) as (_, client), ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(client.post, "/v1/translate", json={"texts": ["a b c"] * 60}) for _ in range(24)]
        time.sleep(0.3)
        for pid in workers(client):
            os.kill(pid, signal.SIGKILL)
        answers = [a.result() for a in asked]
        assert {a.status_code for a in answers} <= {200, 503}
        for answer in answers:
            assert len(answer.json()["predictions"]) == 60 if answer.status_code == 200 else answer.json()["error"]
        until_ready(client)
        assert client.post("/v1/translate", json={"texts": ["a"]}).status_code == 200


def test_told_to_stop_it_finishes_what_it_has(letters):
    with started(letters) as (process, client), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(client.post, "/v1/translate", json={"texts": ["a b c"] * 128, "beam": 10})
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        if not asked.done():  # while it works, others are refused, politely
            told = httpx.post(client.base_url.join("/v1/translate"), json={"texts": ["a"]})
            assert (told.status_code, told.json()["error"]["code"]) == (503, "closing")
        assert len(asked.result().json()["predictions"]) == 128
        assert process.wait(30) in (0, -signal.SIGTERM)


def test_others_need_a_key(letters):
    with started(letters, "--limit", "characters=7", SACCADE_API_KEY="secret") as (process, client):
        assert client.post("/v1/translate", json={"texts": ["a"]}).status_code == 401
        key = {"Authorization": "Bearer secret"}
        assert client.post("/v1/translate", json={"texts": ["a"]}, headers=key).status_code == 200
        told = client.post("/v1/translate", json={"texts": ["a" * 8]}, headers=key).json()["error"]
        assert (told["limit"], told["most"]) == ("characters", 7)  # as the operator said
        known = LibreTranslateAPI(str(client.base_url), api_key="secret")
        assert known.languages() == []  # whose client brings its key in the body
        assert client.post("/translate", json={"q": "a", "source": "en", "target": "de"}).status_code == 403
        process.terminate()
        log = process.communicate(timeout=30)[1]
    first, *lines = [json.loads(line) for line in log.splitlines()]
    assert first == {"serving": str(client.base_url).rstrip("/"), "models": ["letters"]}
    assert any(line["status"] == 401 for line in lines)
    assert all(set(line) == {"id", "method", "path", "status", "ms"} for line in lines)  # and no text of anybody


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--host", "0.0.0.0"], "so set SACCADE_API_KEY or, if you must, say --no-auth"),
        (["--langs", "english"], "expected SOURCE-TARGET"),
        (["--limit", "charcters=9"], "did you mean 'characters'"),
    ],
)
def test_what_is_asked_wrongly_is_one_line(letters, options, says):
    command = [sys.executable, "-m", "saccade", "serve", str(letters), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_what_is_no_run_is_said(tmp_path):
    command = [sys.executable, "-m", "saccade", "serve", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (1, f"error: {tmp_path}: no run of saccade there\n")


@pytest.fixture(scope="module")
def gallery(colours):
    with started(colours[0]) as (_, client):
        yield client, (colours[1] / "5.png").read_bytes()


def test_a_picture_is_captioned_forced_and_steered(gallery):
    client, picture = gallery
    [said] = client.post("/v1/caption?attention=true&tree=true&nbest=2", content=picture).json()["predictions"]
    assert said["grid"] == [4, 6]
    assert len(said["attention"]["cross"][0][0][0]) == 24
    assert len(said["alternatives"]) == 1
    assert said["tree"][0]["parent"] == -1
    [begun] = client.post("/v1/caption?prefix=a%20blue", content=picture).json()["predictions"]
    assert begun["text"].startswith("a blue")
    [forced] = client.post("/v1/caption?target=a%20green%20square", content=picture).json()["predictions"]
    assert forced["text"] == "a green square"
    steered = client.post("/v1/caption?target=a%20green%20square&word=1&places=7", content=picture).json()
    weights = steered["predictions"][0]["attention"]["cross"][0][0][1]
    assert weights[7] == pytest.approx(1)
    steered = client.post("/v1/caption?target=a%20green%20square&word=1&places=7&places=8", content=picture).json()
    weights = steered["predictions"][0]["attention"]["cross"][0][0][1]
    assert weights[7] + weights[8] == pytest.approx(1)
    for wrong in ("word=1", "word=1&places=2", "places=2", "target=a&word=1&places=999", "beam=0", "colour=red"):
        assert client.post(f"/v1/caption?{wrong}", content=picture).status_code == 422, wrong


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_comes_for_a_picture_is_answered_or_refused(gallery, data):
    client, picture = gallery
    kept = data.draw(st.integers(0, len(picture)))
    changed = data.draw(st.binary(max_size=60))
    at = data.draw(st.integers(0, len(picture)))
    for content in (changed, picture[:kept] + changed, picture[:at] + changed + picture[at + len(changed) :]):
        told = client.post("/v1/caption", content=content)
        assert told.status_code in (200, 413, 422), told.text
        assert ("error" in told.json()) == (told.status_code != 200)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(["/v1/translate", "/v1/align", "/translate", "/detect"]),
    asked=st.dictionaries(
        st.sampled_from(["texts", "pairs", "model", "beam", "q", "source", "target", "steer"]), VALUES
    )
    | VALUES,
)
def test_whatever_comes_as_json_is_answered_or_refused(service, path, asked):
    told = service.post(path, content=json.dumps(asked), headers={"Content-Type": "application/json"})
    assert told.status_code < 500, told.text
    assert isinstance(told.json(), dict | list)


def test_no_request_takes_a_model_away_from_others(service):
    before = workers(service)
    for temperature in (1e-46, 1e-300, 0, -1):
        told = service.post("/v1/translate", json={"texts": ["a"], "sample": True, "temperature": temperature})
        assert told.status_code == 422
    cold = service.post("/v1/translate", json={"texts": ["a b"], "sample": True, "temperature": 0.01})
    assert cold.status_code == 200
    halves = service.post("/v1/translate", content=b'{"texts": ["\\ud800 a", "a"]}', headers=JSON)
    assert [p["unknown"] for p in halves.json()["predictions"]] == [["\ufffd"], []]
    for body in (b'{"texts": ["a"], "temperature": NaN, "sample": true}', b"{"):
        told = service.post("/v1/translate", content=body, headers=JSON).json()["error"]
        assert told["code"] == "wrong_input"
    assert workers(service) == before


def test_a_line_that_is_far_too_long_is_one_line(service):
    lines = [b'"a b"', b'"' + b"x" * 150_000 + b'"', b'"c"']

    def pieces():
        body = b"\n".join(lines)
        for start in range(0, len(body), 30_000):
            yield body[start : start + 30_000]

    told = service.post("/v1/stream", content=pieces())
    answers = [json.loads(line) for line in told.text.splitlines()]
    assert ["error" in a for a in answers] == [False, True, False]
    assert service.post("/v1/stream?beams=3", content=b'"a"').status_code == 422


def test_a_stream_answers_while_it_is_open(service):
    """A client that waits for the answer to its first line before it sends the second."""
    host, port = service.base_url.host, service.base_url.port
    with socket.create_connection((host, port), timeout=20) as wire:
        head = f"POST /v1/stream HTTP/1.1\r\nHost: {host}:{port}\r\nTransfer-Encoding: chunked\r\n\r\n"
        wire.sendall(head.encode() + b'4\r\n"a"\n\r\n')
        got = b""
        while b'"text"' not in got:
            got += wire.recv(4096)
        wire.sendall(b'4\r\n"b"\n\r\n0\r\n\r\n')
        while not got.endswith(b"0\r\n\r\n"):
            got += wire.recv(4096)
    assert got.count(b'"version"') == 2


def test_too_many_pixels_name_their_limit_and_are_not_decoded(gallery):
    large = io.BytesIO()
    Image.new("1", (6000, 4000)).save(large, "PNG")
    told = gallery[0].post("/v1/caption", content=large.getvalue())
    assert told.status_code == 413
    assert told.json()["error"]["limit"] == "pixels"
    told = gallery[0].post(f"/v1/caption?prefix={'x' * 1001}", content=gallery[1])
    assert told.json()["error"]["limit"] == "prefix"
    limits = gallery[0].get("/v1/limits").json()
    assert {"tokens", "prefix", "pixels", "queue_bytes"} <= limits.keys()


def test_libretranslate_is_asked_in_any_of_its_ways(service, letters):
    """In the address, as a form of either kind, as JSON; a batch is told the language of each of its texts."""
    asked = {"q": "a b", "source": "en", "target": "de", "format": ""}
    expected = {"translatedText": saccade.load(letters)("a b").text}
    parts = {name: (None, value) for name, value in asked.items()}
    for how in ({"params": asked}, {"data": asked}, {"files": parts}, {"json": asked}):
        assert service.post("/translate", **how).json() == expected, how
    batch = service.post("/translate", json={"q": ["a", "b c"], "source": "auto", "target": "de"}).json()
    assert [found["language"] for found in batch["detectedLanguage"]] == ["en", "en"]


def test_of_html_what_stands_between_tags_is_translated(service, letters):
    first, second = (p.text for p in saccade.load(letters)(["a b", "c < d"]))
    asked = {"q": '<p title="a b">a b <b>c &lt; d</b><br></p>', "source": "en", "target": "de", "format": "html"}
    told = service.post("/translate", json=asked).json()["translatedText"]
    assert told == f'<p title="a b">{first} <b>{second.replace("<", "&lt;")}</b><br></p>'
    assert (
        service.post("/translate", json={**asked, "q": "<br><!-- a -->"}).json()["translatedText"] == "<br><!-- a -->"
    )


def test_more_of_libretranslate(service):
    asked = {"q": "a b", "source": "auto", "target": "de", "alternatives": 2}
    told = service.post("/translate", json=asked).json()
    assert len(told["alternatives"]) == 2
    assert told["detectedLanguage"]["language"] == "en"  # what can be translated into de here
    assert service.post("/translate", json={**asked, "format": "pdf"}).status_code == 400
    told = service.post("/translate", json={**asked, "target": None})
    assert (told.status_code, told.json()) == (400, {"error": "Invalid request: missing target parameter"})
    assert service.head("/").status_code == 200
    assert service.get("/v1/translate").json()["error"]["code"] == "wrong_method"
