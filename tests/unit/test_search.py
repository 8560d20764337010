"""Search: greedy and beam against a search by hand, ensembles, limits, and attention that follows the hypothesis."""

import itertools
import math
import sys

import pytest
import torch
from problems import assert_equal
from test_models import ALL, V_SOURCE, V_TARGET, longest, name, sources

from saccade.config import ModelConfig
from saccade.data import Frame, Tokeniser
from saccade.model import build
from saccade.model.decoder import Step
from saccade.search import Options, Sampling, Translator, Voice, beam_search, force
from saccade.search.options import LENGTH_PENALTY
from saccade.search.tree import Grown
from saccade.see import Prediction

START, STOP = 1, 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"beam": 2.5},
        {"nbest": math.nan},
        {"length_penalty": math.nan},
        {"length_penalty": 1e9},
        {"coverage_penalty": -1.0},
        {"coverage_penalty": math.nan},
        {"sample": True, "temperature": math.inf},
        {"sample": True, "temperature": 1e300},
        {"sample": True, "top_k": 1.5},
    ],
    ids=str,
)
def test_numbers_that_mean_nothing_are_refused_by_name(wrong):
    with pytest.raises(ValueError, match=f"^{list(wrong)[-1]}: .*, expected a"):
        Options(**wrong)


def make(settings, seed=0):
    torch.manual_seed(seed)
    model = build(ModelConfig.read({"width": 8, **longest(settings), **settings}), V_SOURCE, V_TARGET).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


@pytest.fixture(params=ALL, ids=map(name, ALL))
def model(request):
    return make(request.param)


def by_hand(model, memory, limit, beam, penalty):
    """The same beam search for one sentence in plain Python: lists of hypotheses, forced decoding from scratch."""

    def rank(hypothesis):
        return -hypothesis[1] / len(hypothesis[0]) ** penalty

    going, done = [((), 0.0)], []
    for _ in range(limit):
        candidates = []
        for words, score in going:
            given = torch.tensor([[START, *words]])
            logits = model.decoder.readout(model.decoder(memory, given).hidden[0, -1])
            candidates += [((*words, w), score + p) for w, p in enumerate(logits.log_softmax(-1).tolist())]
        candidates = sorted(candidates, key=lambda c: -c[1])[: 2 * beam]
        done += [c for c in candidates[:beam] if c[0][-1] == STOP]
        going = [c for c in candidates if c[0][-1] != STOP][:beam]
        done = sorted(done, key=rank)[:beam]
        full = len(done) == beam
        if full and (min(map(rank, going)) >= rank(done[-1]) or max(g[1] for g in going) <= min(d[1] for d in done)):
            break
    else:
        done += going if len(done) < beam else []
    return sorted(done, key=rank)[:beam]


@pytest.mark.parametrize("beam", [1, 3])
def test_the_search_is_the_one_by_hand(model, beam):
    tokens, mask = sources()
    memory = model.encode(tokens, mask)
    limits = torch.tensor([6, 3, 5])
    found = beam_search([model], [memory], limits, start=START, stop=STOP, beam=beam)
    for b, hypotheses in enumerate(found):
        alone = model.encode(tokens[b : b + 1, : mask[b].sum()], mask[b : b + 1, : mask[b].sum()])
        with torch.no_grad():
            expected = by_hand(model, alone, int(limits[b]), beam, 1.0)
        assert [h.tokens for h in hypotheses] == [words for words, _ in expected]
        assert [h.score for h in hypotheses] == pytest.approx([score for _, score in expected], abs=1e-9)
        assert [h.cut for h in hypotheses] == [words[-1] != STOP for words, _ in expected]


def test_the_score_is_that_of_forced_decoding(model):
    memory = model.encode(*sources())
    for b, hypotheses in enumerate(
        beam_search([model], [memory], torch.tensor([7] * 3), start=START, stop=STOP, beam=4)
    ):
        for hypothesis in hypotheses:
            targets = torch.tensor([hypothesis.tokens])
            forced = force([model], [memory.select(torch.tensor([b]))], targets, start=START)
            assert hypothesis.score == pytest.approx(forced.log_probabilities.sum().item(), abs=1e-9)


def test_attention_of_the_beam_is_that_of_forced_decoding(model):
    """Law 2: walk the decoder step by step along a hypothesis, and it looks where forced decoding says it looked."""
    memory = model.encode(*sources())
    hypothesis = beam_search([model], [memory], torch.tensor([7] * 3), start=START, stop=STOP, beam=4)[0][-1]
    first = memory.select(torch.tensor([0]))
    forced = force([model], [first], torch.tensor([hypothesis.tokens]), start=START)
    state = model.decoder.init(first)
    for t, word in enumerate((START, *hypothesis.tokens[:-1])):
        step = model.decoder.step(first, state, torch.tensor([[word]]))
        state = step.state
        if forced.weights is None:
            assert step.weights is None
        else:
            assert_equal(step.weights[0, 0], forced.weights[0, t])


def test_several_models_average_their_probabilities():
    one, other = make({"family": "luong"}, 1), make({"family": "transformer", "heads": 2}, 2)
    memories = [m.encode(*sources()) for m in (one, other)]
    targets = torch.randint(V_TARGET, (3, 4))
    together = force([one, other], memories, targets, start=START, beside=V_TARGET)
    each = [
        force([m], [memory], targets, start=START, beside=V_TARGET)
        for m, memory in zip((one, other), memories, strict=True)
    ]
    assert_equal(everything(together), (everything(each[0]) + everything(each[1])) / 2)
    assert_equal(together.log_probabilities.exp(), everything(together).gather(2, targets.unsqueeze(2)).squeeze(2))
    assert_equal(together.weights.sum(-1), torch.ones(3, 4, 1, 1, dtype=torch.float64))
    found = beam_search([one, other], memories, torch.tensor([5] * 3), start=START, stop=STOP, beam=2)
    words = torch.tensor([found[0][0].tokens])
    rescored = force([one, other], [m.select(torch.tensor([0])) for m in memories], words, start=START)
    assert found[0][0].score == pytest.approx(rescored.log_probabilities.sum().item(), abs=1e-9)


def everything(forced):
    """The probability of every word in every place, if all were asked for: [B, T, V]."""
    return torch.zeros_like(forced.likely).scatter(2, forced.numbers, forced.likely.exp())


def test_forced_decoding_never_holds_all_logits(model, monkeypatch):
    other, read = make({"family": "luong"}, 1), []
    memories = [m.encode(*sources()) for m in (model, other)]
    targets = torch.randint(V_TARGET, (3, 5))
    whole = force([model, other], memories, targets, start=START, beside=3)
    for m in (model, other):
        readout = m.decoder.readout
        m.decoder.readout = lambda hidden, readout=readout: read.append(readout(hidden)) or read[-1]
    monkeypatch.setattr(sys.modules["saccade.search.force"], "LOGITS", 4 * V_TARGET + 1)
    pieces = force([model, other], memories, targets, start=START, beside=3)
    assert {logits.shape for logits in read} == {(4, V_TARGET), (3, V_TARGET)}  # 15 places
    for all_at_once, in_pieces in zip(whole, pieces, strict=True):
        assert (all_at_once is None) == (in_pieces is None)
        assert all_at_once is None or torch.allclose(all_at_once.double(), in_pieces.double(), atol=1e-10)


def test_an_ensemble_of_one_model_twice_is_that_model():
    model = make({"family": "bahdanau"})
    memory = model.encode(*sources())
    options = {"start": START, "stop": STOP, "beam": 3}
    once = beam_search([model], [memory], torch.tensor([6] * 3), **options)
    twice = beam_search([model, model], [memory, memory], torch.tensor([6] * 3), **options)
    assert [[h.tokens for h in s] for s in once] == [[h.tokens for h in s] for s in twice]


def test_a_wider_beam_finds_nothing_worse():
    """Exhaustive: with a beam as wide as there are hypotheses, the best of all is found."""
    model = make({"family": "luong"})
    memory = model.encode(*sources()).select(torch.tensor([0]))
    best = -math.inf
    for first in range(V_TARGET):
        for second in range(V_TARGET):
            words = (first,) if first == STOP else (first, second)
            targets = torch.tensor([words])
            costs = force([model], [memory], targets, start=START).log_probabilities.sum().item()
            best = max(best, costs / len(words))
    found = beam_search([model], [memory], torch.tensor([2]), start=START, stop=STOP, beam=V_TARGET)[0][0]
    assert found.score / len(found.tokens) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("beam", [1, 2, 3])
def test_what_ended_early_does_not_end_the_search(beam):
    """A model that nearly always goes on, for five words, though it never rules out to stop."""
    settings = {"family": "seq2seq"}
    model, memory = make(settings), make(settings).encode(*sources()).select(torch.tensor([0]))

    def step(memory, state, tokens, **_):
        likely = STOP if state.written == 5 else 5
        shares = torch.full((*tokens.shape, V_TARGET), 0.01 / (V_TARGET - 2)).double()
        shares[..., STOP], shares[..., likely] = 0.04, 0.95
        return Step(shares.log(), state.next(**state.tensors), None)

    model.decoder.step = step
    found = beam_search([model], [memory], torch.tensor([9]), start=START, stop=STOP, beam=beam)[0]
    assert found[0].tokens == (5, 5, 5, 5, 5, STOP)
    assert len(found) == beam


def test_no_sentences_at_all():
    model = make({"family": "luong"})
    tokens, mask = sources()
    memory = model.encode(tokens[:0], mask[:0])
    assert beam_search([model], [memory], torch.zeros(0, dtype=torch.long), start=START, stop=STOP) == []


def test_a_prefix_is_what_every_hypothesis_begins_with(model):
    memory = model.encode(*sources())
    prefix = torch.tensor([[5, 6], [7, 0], [0, 0]])  # PAD leaves the choice free
    found = beam_search([model], [memory], torch.tensor([6] * 3), start=START, stop=STOP, beam=3, prefix=prefix)
    free = beam_search([model], [memory], torch.tensor([6] * 3), start=START, stop=STOP, beam=3)
    assert all(h.tokens[:2] == (5, 6) for h in found[0])
    assert all(h.tokens[0] == 7 for h in found[1])
    assert [h.tokens for h in found[2]] == [h.tokens for h in free[2]]


def test_samples_follow_the_distribution():
    """Many draws of the first word, against its probabilities: 4,000 draws stray by about 0.008 (one sigma)."""
    model = make({"family": "luong"})
    memory = model.encode(*sources()).select(torch.tensor([0]))
    chance = torch.Generator().manual_seed(0)
    draws = torch.rand(1, 4000, 1, generator=chance)
    expected = everything(force([model], [memory], torch.tensor([[0]]), start=START, beside=V_TARGET))[0, 0]

    def frequencies(**options):
        found = beam_search(
            [model], [memory], torch.tensor([1]), start=START, stop=STOP, beam=4000, sampling=Sampling(draws, **options)
        )
        assert len(found[0]) == 4000
        return torch.bincount(torch.tensor([h.tokens[0] for h in found[0]]), minlength=V_TARGET) / 4000

    assert (frequencies() - expected).abs().max() < 0.03
    cold = (expected.log() / 0.5).softmax(0)
    assert (frequencies(temperature=0.5) - cold).abs().max() < 0.03
    ranked = expected.argsort(descending=True)
    top = frequencies(top_k=2)
    assert top[ranked[2:]].sum() == 0
    assert (top[ranked[:2]] - expected[ranked[:2]] / expected[ranked[:2]].sum()).abs().max() < 0.03
    nucleus = int((expected[ranked].cumsum(0) < 0.6).sum()) + 1
    assert frequencies(top_p=0.6)[ranked[nucleus:]].sum() == 0


def test_a_sample_costs_what_forced_decoding_says(model):
    memory = model.encode(*sources())
    draws = torch.rand(3, 4, 8, generator=torch.Generator().manual_seed(1))
    limits = torch.tensor([7] * 3)
    found = beam_search([model], [memory], limits, start=START, stop=STOP, beam=4, sampling=Sampling(draws))
    for b, hypotheses in enumerate(found):
        assert len(hypotheses) == 4
        for h in hypotheses:
            targets = torch.tensor([h.tokens])
            forced = force([model], [memory.select(torch.tensor([b]))], targets, start=START)
            assert h.score == pytest.approx(forced.log_probabilities.sum().item(), abs=1e-9)


@pytest.mark.parametrize("settings", [s for s in ALL if s["family"] != "seq2seq"][:3], ids=str)
def test_a_coverage_penalty_ranks_by_what_was_looked_at(settings):
    model = make(settings)
    memory = model.encode(*sources())
    found = beam_search([model], [memory], torch.tensor([6] * 3), start=START, stop=STOP, beam=4, coverage_penalty=2.0)
    for b, hypotheses in enumerate(found):
        ranks = []
        for h in hypotheses:
            one = memory.select(torch.tensor([b]))
            weights = force([model], [one], torch.tensor([h.tokens]), start=START).weights
            seen = weights.mean((2, 3)).sum(1)[0][one.mask[0]].clamp(1e-9, 1)
            ranks.append(h.score / len(h.tokens) + 2.0 * seen.log().sum().item())
        assert ranks == pytest.approx(sorted(ranks, reverse=True), abs=1e-9)


def test_a_coverage_penalty_without_attention_is_said_to_be_useless():
    model = make({"family": "seq2seq"})
    with pytest.raises(ValueError, match="without attention covers nothing"):
        beam_search(
            [model], [model.encode(*sources())], torch.tensor([6] * 3), start=START, stop=STOP, coverage_penalty=1
        )


def test_what_is_never_written_is_not_written(model):
    memory = model.encode(*sources())
    limits = torch.tensor([6] * 3)
    free = beam_search([model], [memory], limits, start=START, stop=STOP, beam=3)
    often = max((w for h in free for x in h for w in x.tokens if w != STOP), default=5)
    found = beam_search([model], [memory], limits, start=START, stop=STOP, beam=3, never=[often])
    assert not any(often in x.tokens for h in found for x in h)
    assert all(h for h in found)


def test_a_longer_caption_is_not_favoured_but_a_longer_translation_may_be():
    for pictures in (True, False):
        translator = Translator.__new__(Translator)
        translator.voices = [Voice(None, Frame(8, 8) if pictures else Tokeniser.train(["a b"], "symbols"))]
        assert translator._length_penalty(Options()) == LENGTH_PENALTY[pictures]
        assert translator._length_penalty(Options(length_penalty=0.7)) == 0.7


def test_the_tree_holds_every_hypothesis_at_its_score(model):
    memory, limits, grown = model.encode(*sources()), torch.tensor([6, 3, 5]), Grown(3, 3)
    found = beam_search([model], [memory], limits, start=START, stop=STOP, beam=3, grown=grown)
    plain = beam_search([model], [memory], limits, start=START, stop=STOP, beam=3)
    assert found == plain
    for tree, hypotheses in zip(grown.trees, found, strict=True):
        paths = {}
        for i, (parent, token, score) in enumerate(tree):
            assert parent < i
            before = () if parent < 0 else paths[parent][0]
            assert parent < 0 or score <= tree[parent].score  # no word makes a hypothesis likelier
            paths[i] = ((*before, token), score)
        assert len({path for path, _ in paths.values()}) == len(tree)  # each is there once
        for hypothesis in hypotheses:
            assert (hypothesis.tokens, pytest.approx(hypothesis.score)) in paths.values()


def test_a_prediction_tells_the_tree_in_words():
    tokeniser = Tokeniser.train(["ab ba a b"], "characters")
    torch.manual_seed(0)
    size = len(tokeniser)
    model = build(ModelConfig.read({"family": "luong", "width": 8}), size, size)
    translator = Translator([Voice(model, tokeniser)], tokeniser, most_tokens=12)
    said, none = translator(["ab", ""], beam=3, nbest=2, tree=True)
    assert none.tree == ()
    assert translator("ab", beam=3).tree == ()
    texts = []
    for branch in said.tree:
        before = "" if branch.parent < 0 else texts[branch.parent]
        texts.append(before + branch.text)
        above = 0.0 if branch.parent < 0 else said.tree[branch.parent].score
        assert branch.probability == pytest.approx(math.exp(branch.score - above))
    assert said.text + ("" if said.cut_output else "∎") in texts
    assert Prediction.read(said.record()).tree[0].text == said.tree[0].text


def test_blanks_around_a_text_are_not_part_of_it():
    tokeniser = Tokeniser.train(["a b c", "d e"], "characters")
    torch.manual_seed(0)
    model = build(ModelConfig(family="luong", width=8), len(tokeniser), len(tokeniser))
    translator = Translator([Voice(model, tokeniser)], tokeniser)
    plain, wrapped = translator("a b"), translator(" \ta b\n")
    assert plain.text == wrapped.text
    assert [t.text for t in plain.source_tokens] == [t.text for t in wrapped.source_tokens]
    assert [t.span for t in wrapped.source_tokens[:-1]] == [(2, 3), (3, 4), (4, 5)]


def test_of_sources_with_many_hypotheses_fewer_are_read_at_once_and_none_notices(monkeypatch):
    tokeniser = Tokeniser.train(["abcdef"], "characters")
    size = len(tokeniser)
    torch.manual_seed(0)
    model = build(ModelConfig(family="luong", width=8), size, size)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    translator = Translator([Voice(model, tokeniser)], tokeniser, most_tokens=12)
    texts, held = ["".join(pair) for pair in itertools.product("abcdef", repeat=2)], []

    def counted(models, memories, limits, **options):
        held.append(len(limits) * options["beam"])
        return beam_search(models, memories, limits, **options)

    monkeypatch.setattr("saccade.search.translator.beam_search", counted)
    for options in ({"beam": 20, "nbest": 3}, {"sample": True, "nbest": 20}):
        together = translator(texts, **options)
        assert max(held) <= 64 * 5
        assert sum(held) == 20 * len(texts)
        for p in together:
            alone = translator(p.source, **options)
            assert [a.text for a in (alone, *alone.alternatives)] == [a.text for a in (p, *p.alternatives)]
            assert alone.score == pytest.approx(p.score, abs=1e-4)
        held.clear()
