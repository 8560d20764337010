"""LibreTranslate's API without a model: what is known of languages, HTML in pieces, forms as browsers send them."""

import asyncio

import httpx
from hypothesis import given
from hypothesis import strategies as st

from saccade.serve.app import build_app
from saccade.serve.desk import Desk
from saccade.serve.libre import Parts, _multipart
from saccade.serve.limits import Limits


def asked(path, langs=None, **facts):
    """What a service answers whose models know such things of themselves."""
    desks = []
    for name, known in facts.items():
        desks.append(Desk(name, ["nowhere"], Limits(), 1))
        desks[-1].facts = known

    async def scene():
        transport = httpx.ASGITransport(build_app(desks, Limits(), hosts=["localhost"], langs=langs))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return (await client.get(path)).json()

    return asyncio.run(scene())


def test_languages_are_those_of_the_run_unless_the_operator_says_others():
    known = {"a": {"langs": ["ko", "en"]}, "b": {"langs": ["ko", "de"]}, "c": {"langs": None}}
    assert asked("/languages", **known) == [
        {"code": "ko", "name": "Korean", "targets": ["en", "de"]},
        {"code": "en", "name": "English", "targets": []},
        {"code": "de", "name": "German", "targets": []},
    ]
    assert [row["code"] for row in asked("/languages", {"a": ("fr", "it")}, a=known["a"])] == ["fr", "it"]


@given(st.text(alphabet='<>/!-ab &;"\n', max_size=40))
def test_what_is_not_translated_stays_as_it_is(text):
    """With a model that repeats what it reads, as far as HTML tells it apart."""
    parts = Parts(text, True)
    assert all(part == part.strip() for part in parts.texts)
    parts.answers = [{"text": "x", "cut_source": False, "cut_output": False} for _ in parts.texts]
    written = parts.written(0)
    assert written.count("x") == len(parts.texts)
    assert [piece for piece in parts.pieces[1::2] if piece not in written] == []  # every tag
    assert Parts(text, False).texts == [text]


@given(st.dictionaries(st.text("abc", min_size=1), st.text(max_size=20)), st.booleans())
def test_a_form_of_a_browser_is_read(fields, quoted):
    border = "----there"
    parts = [f'--{border}\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in fields.items()]
    body = "".join([*parts, f"--{border}--\r\n"]).encode()
    kind = f'multipart/form-data; boundary="{border}"' if quoted else f"multipart/form-data; boundary={border}"
    assert _multipart(kind, body) == fields
    assert _multipart("multipart/form-data", body) == {}
