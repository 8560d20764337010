"""The dictionary of the lecture notes, in its three forms."""

import pytest
import torch

from saccade import SoftDict, attend

ITEMS = {"dog": 1, "computer": 2, "cat": 3}
PUPPY = {"dog": 0.9, "computer": 0.1, "cat": 0.7}
VECTORS = {"dog": [2.0, 0.0], "cat": [1.5, 0.2], "computer": [-1.0, 2.0], "puppy": [1.8, 0.1]}


def word2vec(word):
    return torch.tensor(VECTORS[word])


def test_exact_match_is_a_python_dictionary():
    animals = SoftDict(ITEMS)
    assert [animals[key] for key in ITEMS] == list(ITEMS.values())
    assert [animals(key).item() for key in ITEMS] == list(ITEMS.values())
    assert animals("puppy").item() == 0  # nothing matches: nothing is summed
    assert len(animals) == 3
    assert list(animals) == list(ITEMS)
    assert "dog" in animals
    assert "puppy" not in animals
    with pytest.raises(KeyError, match="puppy"):
        animals["puppy"]


def test_the_sum_of_the_notes():
    animals = SoftDict(ITEMS, similarity=lambda key, query: PUPPY[key])
    assert animals("puppy").item() == pytest.approx(0.9 * 1 + 0.1 * 2 + 0.7 * 3)
    assert animals("puppy").item() == pytest.approx(3.2)


def test_three_forms_on_one_object():
    animals = SoftDict(ITEMS, embed=word2vec, similarity=lambda key, query: PUPPY[key])
    assert animals("dog", form="exact").item() == 1
    assert animals("puppy", form="weighted").item() == pytest.approx(3.2)
    weights = torch.softmax(torch.stack([word2vec(k) @ word2vec("puppy") for k in ITEMS]), 0)
    torch.testing.assert_close(animals.weights("puppy"), weights)
    torch.testing.assert_close(animals("puppy", form="softmax"), weights @ torch.tensor([1.0, 2.0, 3.0]))


def test_without_a_similarity_the_cosine_is_used():
    animals = SoftDict(ITEMS, embed=word2vec)
    cosines = [torch.cosine_similarity(word2vec(k), word2vec("puppy"), 0) for k in ITEMS]
    torch.testing.assert_close(animals.weights("puppy", form="weighted"), torch.stack(cosines))


def test_vectors_with_softmax_are_attention():
    keys, values, queries = torch.randn(5, 4), torch.randn(5, 3), torch.randn(2, 4)
    memory = SoftDict(zip(keys, values, strict=True))
    torch.testing.assert_close(memory(queries), attend(queries, keys, values, score="dot").context)
    torch.testing.assert_close(memory(queries[0]), attend(queries[:1], keys, values, score="dot").context[0])
    assert torch.equal(memory[keys[2]], values[2])


def test_it_grows_and_replaces():
    animals = SoftDict(embed=word2vec)
    assert animals("puppy").item() == 0
    animals["dog"] = 1
    assert animals("puppy").item() == 1
    animals["cat"] = 3
    assert 1 < animals("puppy").item() < 3
    animals["dog"] = 3
    assert len(animals) == 2
    assert animals("puppy").item() == pytest.approx(3)


def test_it_is_a_mapping_in_every_other_way():
    animals = SoftDict(ITEMS)
    assert dict(animals.items()) == ITEMS
    assert animals.get("wolf", 0) == 0
    del animals["cat"]
    assert list(animals.keys()) == ["dog", "computer"]
    assert animals.pop("dog") == 1
    with pytest.raises(KeyError, match="dog"):
        del animals["dog"]


def test_it_learns_where_to_look():
    keys, query = torch.randn(4, 3), torch.zeros(3, requires_grad=True)
    memory = SoftDict(zip(keys, torch.tensor([0.0, 0.0, 1.0, 0.0]), strict=True))
    optimiser = torch.optim.Adam([query], 0.3)
    for _ in range(200):
        optimiser.zero_grad()
        (1 - memory(query)).backward()
        optimiser.step()
    assert memory.weights(query).argmax() == 2
    assert memory(query) > 0.9


def test_an_embedding_is_trained_through_it():
    table = torch.nn.Embedding(3, 4)
    memory = SoftDict([(0, 1.0), (1, 2.0)], embed=lambda i: table(torch.tensor(i)))
    memory(2).backward()
    assert (table.weight.grad.abs().sum(-1) > 0).all()  # both keys and the query


def test_explain_tells_what_it_looked_at_and_how_much(capsys):
    SoftDict(ITEMS, similarity=lambda key, query: PUPPY[key]).explain("puppy")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["'dog'", "'cat'", "'computer'"]  # the most first
    assert [line.split()[1] for line in lines[1:4]] == ["0.900", "0.700", "0.100"]
    assert lines[4].strip() == "answer 3.2"


def test_explain_sums_up_a_long_tail(capsys):
    SoftDict((torch.randn(3), torch.randn(5)) for _ in range(30)).explain(torch.randn(3))
    out = capsys.readouterr().out
    assert "… and 20 more keys" in out
    assert out.count("█") > 0


def test_repr():
    assert repr(SoftDict({"dog": 1})) == "SoftDict({'dog': 1})"


@pytest.mark.parametrize(
    ("attempt", "says"),
    [
        (lambda: SoftDict(ITEMS)("puppy", form="softmax"), "form 'softmax' needs vectors"),
        (lambda: SoftDict(ITEMS)("puppy", form="weighted"), "form 'weighted' needs similarity="),
        (lambda: SoftDict(ITEMS)("puppy", form="softmx"), "did you mean 'softmax'?"),
        (lambda: SoftDict({torch.randn(3): 1})("puppy"), "'puppy' is no vector"),
        (lambda: SoftDict({torch.randn(3): 1})(torch.randn(4)), "query: width 4, expected 3"),
        (lambda: SoftDict([(torch.randn(3), torch.zeros(2)), (torch.randn(3), 1)])(torch.randn(3)), "values: shapes"),
        (lambda: SoftDict({torch.randn(3): 1, torch.randn(4): 2})(torch.randn(3)), "keys: shapes [[3], [4]]"),
        (lambda: SoftDict({"dog": "one"})("dog"), "cannot be summed; expected numbers or tensors"),
        (lambda: SoftDict({torch.randn(3): 1}).explain(torch.randn(2, 3)), "query: 2 at once; explain takes one"),
    ],
)
def test_bad_input(attempt, says):
    with pytest.raises(ValueError) as error:
        attempt()
    assert says in str(error.value)
