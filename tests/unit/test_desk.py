"""The desk: batches are fair, answers find their way back, and who has left costs nothing more."""

import asyncio
import json

import pytest

from saccade.serve.desk import AT_ONCE, Desk
from saccade.serve.limits import Limits, Refused


class FakeChild:
    """A process that answers when it is told to."""

    def __init__(self):
        self.batches, self.pipe, self.facts, self.fate = [], self, {"reads": "text"}, []

    def send_bytes(self, message):
        self.batches.append(json.loads(message))

    def ends(self, why):
        self.fate.append(why)


def desk(**limits):
    made = Desk("model", ["nowhere"], Limits(**limits), 1)
    made.child = FakeChild()
    return made, made.child


def answer(made, child):
    """Answers the batch that the process is at: every text in capitals."""
    items = child.batches[-1]["items"]
    made._heard(child, {"found": [{"text": item.upper()} for item in items]})
    return items


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_large_request_delays_a_small_one_by_a_batch():
    async def scene():
        made, child = desk()
        large = asyncio.create_task(made.ask("translate", [f"a{i}" for i in range(200)]))
        await settle()
        small = asyncio.create_task(made.ask("translate", ["b"]))
        await settle()
        assert answer(made, child) == [f"a{i}" for i in range(AT_ONCE)]
        assert "b" in answer(made, child)
        await settle()
        assert small.result() == [{"text": "B"}]
        while not large.done():
            answer(made, child)
            await settle()
        assert [a["text"] for a in large.result()] == [f"A{i}" for i in range(200)]

    asyncio.run(scene())


def test_an_answer_may_not_be_larger_than_allowed():
    async def scene():
        made, child = desk(answer_bytes=1000)
        large = asyncio.create_task(made.ask("translate", ["a"] * 100))
        await settle()
        items = child.batches[-1]["items"]
        made._heard(child, {"found": [{"text": item} for item in items]}, 2000)
        await settle()
        with pytest.raises(Refused, match="answer_bytes: 1,"):
            large.result()
        assert made.waiting == 0  # and nobody goes on with the rest

    asyncio.run(scene())


def test_long_texts_make_small_batches():
    """So that a small request never waits for minutes of somebody else's."""

    async def scene():
        made, child = desk()
        options = {"beam": 5}
        large = asyncio.create_task(made.ask("translate", ["x" * 5000] * 10, options=options))
        await settle()
        small = asyncio.create_task(made.ask("translate", ["b"], options=options))
        await settle()
        assert len(answer(made, child)) == 1
        assert len(answer(made, child)) <= 2
        assert "b" in {item for sent in child.batches[:3] for item in sent["items"]}
        await settle()
        large.cancel()
        await settle()
        while made.sent:
            answer(made, child)
        await settle()
        assert small.done()
        assert made.bytes == 0

    asyncio.run(scene())


def test_only_what_is_alike_shares_a_batch():
    async def scene():
        made, child = desk()
        one = asyncio.create_task(made.ask("translate", ["a"] * 40, beam=1))
        two = asyncio.create_task(made.ask("translate", ["b"] * 3, beam=5))
        three = asyncio.create_task(made.ask("translate", ["c"] * 3, beam=1))
        await settle()
        while not (one.done() and two.done() and three.done()):
            assert len(set(child.batches[-1]["items"]) & {"b"}) in (
                0,
                len(set(child.batches[-1]["items"])),
            )
            answer(made, child)
            await settle()
        assert [len(t.result()) for t in (one, two, three)] == [40, 3, 3]

    asyncio.run(scene())


def test_another_kind_has_its_turn_however_many_ask_alike():
    async def scene():
        made, child = desk()
        many = [asyncio.create_task(made.ask("translate", [f"a{i}"] * 30, beam=5)) for i in range(40)]
        await settle()
        other = asyncio.create_task(made.ask("translate", ["b"], beam=1))
        await settle()
        for _ in range(
            4
        ):  # a0 alone, thirty-two of the others, b, and those who had to stand back before who had a turn
            answer(made, child)
            await settle()
        assert child.batches[2]["items"] == ["b"]
        assert other.done()
        assert {item for sent in child.batches[:4] for item in sent["items"]} == {"b", *(f"a{i}" for i in range(40))}
        for task in many:
            task.cancel()

    asyncio.run(scene())


def test_who_has_left_is_not_worked_for():
    async def scene():
        made, child = desk()
        gone = asyncio.create_task(made.ask("translate", ["a"] * 100))
        await settle()
        gone.cancel()
        await settle()
        answer(made, child)
        assert made.waiting == 0
        assert len(child.batches) == 1

    asyncio.run(scene())


def test_a_full_queue_and_a_slow_answer_name_their_limit():
    async def scene():
        made, child = desk(queue=50, seconds=0.05)
        with pytest.raises(Refused) as refused:
            await made.ask("translate", ["a"] * 51)
        assert (refused.value.status, refused.value.limit) == (429, "queue")
        with pytest.raises(Refused) as refused:
            await made.ask("translate", ["a"])
        assert (refused.value.status, refused.value.limit) == (503, "seconds")
        assert await made.ask("translate", []) == []
        assert child.batches

    asyncio.run(scene())


def test_a_process_that_dies_again_and_again_is_given_up():
    async def scene():
        made, child = desk()
        made.start = lambda: None
        asked = asyncio.create_task(made.ask("translate", ["a"] * 40))
        await settle()
        made._died(child)  # the batch it was at is lost, and said to be
        await settle()
        assert asked.exception().code == "interrupted"
        waits = asyncio.create_task(made.ask("translate", ["b"]))
        await settle()
        for _ in range(4):
            made._died(FakeChild())
        await settle()
        assert waits.exception().code == "unfit"
        with pytest.raises(Refused, match="again and again"):
            await made.ask("translate", ["c"])

    asyncio.run(scene())


def test_a_model_that_cannot_be_loaded_keeps_nobody_waiting():
    async def scene():
        made, child = desk()
        made.child = None
        waits = asyncio.create_task(made.ask("translate", ["a"]))
        await settle()
        made._heard(child, {"unfit": "torn"})
        await settle()
        assert waits.exception().message == "model: torn"

    asyncio.run(scene())


@pytest.mark.parametrize("how", ["unfit", "died", "waited, then died"])
def test_a_successor_that_fails_changes_nothing(how):
    async def scene():
        made, child = desk()
        new = FakeChild()
        new.fate = asyncio.get_running_loop().create_future()
        new.ends = new.fate.set_result
        made.start = lambda: new
        working = asyncio.create_task(made.ask("translate", ["a"]))
        asked = asyncio.create_task(made.reload())
        await settle()
        if how == "unfit":
            made._heard(new, {"unfit": "torn"})
        else:
            if "waited" in how:
                made._heard(new, {"ready": {}})  # while the old one is at a batch
            made._died(new)
        await settle()
        assert asked.exception().status == 409
        assert "the old one goes on" in asked.exception().message
        answer(made, child)
        after = asyncio.create_task(made.ask("translate", ["b"]))
        await settle()
        assert answer(made, child) == ["b"]
        await settle()
        assert (working.result(), after.result()) == ([{"text": "A"}], [{"text": "B"}])

    asyncio.run(scene())
