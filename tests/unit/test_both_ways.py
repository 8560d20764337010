"""Models that write from the start and from the end: each decoder is an ordinary one, and the beam asks both."""

import itertools

import pytest
import torch
from problems import assert_equal
from test_models import V_SOURCE, V_TARGET, longest, name, sources

from saccade.config import ModelConfig
from saccade.config.image import ImageConfig
from saccade.data import PAD, START, STOP, UNKNOWN, Tokeniser
from saccade.model import Model, build
from saccade.model.build import mirrored
from saccade.search import Options, Translator, Voice, beam_search, force
from saccade.search.agreement import agree, offered, turned
from saccade.search.beam import Hypothesis

FAMILIES = [
    {"family": "seq2seq"},
    {"family": "bahdanau", "score": "additive"},
    {"family": "luong", "feed": False},
    {"family": "luong", "walk": True},
    {"family": "transformer", "heads": 2, "layers": 2},
]


@pytest.fixture(params=FAMILIES, ids=map(name, FAMILIES))
def model(request):
    return make(request.param)


def make(settings, seed=0):
    torch.manual_seed(seed)
    settings = {"width": 8, "both_ways": True, "dropout": 0.0, **longest(settings), **settings}
    model = build(ModelConfig.read(settings), V_SOURCE, V_TARGET).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


TARGETS = [[5, 6, 7, 8], [9], [4, 10]]


def batch(targets):
    given = torch.nn.utils.rnn.pad_sequence([torch.tensor([START, *t]) for t in targets], batch_first=True)
    wanted = torch.nn.utils.rnn.pad_sequence([torch.tensor([*t, STOP]) for t in targets], batch_first=True)
    real = torch.arange(given.shape[1]) < torch.tensor([[len(t) + 1] for t in targets])
    return given, wanted, real


def test_targets_are_turned_as_lists_are():
    given, wanted, real = batch(TARGETS)
    expected = batch([t[::-1] for t in TARGETS])
    found = mirrored(given, wanted, real)
    for mine, theirs in zip(found, expected, strict=False):
        assert torch.equal(torch.where(real, mine, 0), torch.where(real, theirs, 0))
    assert turned((5, 6, STOP), STOP) == (6, 5, STOP)
    assert turned((5, 6), STOP) == (6, 5)
    assert turned((), STOP) == ()


def test_a_memory_turned_twice_is_the_same_and_padding_stays_behind(model):
    tokens, mask = sources()
    memory = model.encode(tokens, mask)
    once = memory.mirrored()
    for b in range(3):
        n = int(mask[b].sum())
        assert_equal(once.keys[b, :n], memory.keys[b, :n].flip(0))
        assert_equal(once.values[b, :n], memory.values[b, :n].flip(0))
    assert_equal(once.mirrored().keys, memory.keys)
    assert torch.equal(once.mask, memory.mask)


def test_a_picture_is_read_from_the_right_and_stays_where_it_is():
    config = ModelConfig.read({"family": "luong", "width": 8, "both_ways": True})
    model = build(config, ImageConfig(height=16, width=32, stride=8), V_TARGET).eval()
    memory = model.encode(torch.randint(256, (1, 3, 16, 32), dtype=torch.uint8), torch.tensor([[16, 24]]))
    once = memory.mirrored()
    assert_equal(once.keys, memory.keys)
    assert_equal(once.along, 1 - memory.along)


def test_the_loss_is_the_mean_of_two_models_one_of_which_writes_backwards(model):
    tokens, mask = sources()
    given, wanted, real = batch(TARGETS)
    memory = model.encode(tokens, mask)
    ahead = Model(model.encoder, model.decoder)(tokens, mask, given, wanted, real)
    other, behind = model.turned(memory)
    backwards = batch([t[::-1] for t in TARGETS])
    said = force([other], [behind], backwards[1], start=START).log_probabilities
    assert_equal(model(tokens, mask, given, wanted, real), (ahead - said[real].sum()) / 2)


def test_both_decoders_and_the_encoder_learn(model):
    tokens, mask = sources()
    model(tokens, mask, *batch(TARGETS)).backward()
    for part in (model.encoder, model.decoder, model.mirrored):
        assert sum(p.grad.abs().sum() for p in part.parameters() if p.grad is not None) > 0


def cost(model, memory, tokens):
    targets = torch.tensor([tokens])
    return force([model], [memory], targets, start=START).log_probabilities.sum().item()


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_what_both_like_best_of_all_that_was_found_is_chosen(model, penalty, free):
    """Against sums by hand, each sentence alone: the company of others changes nothing."""
    tokens, mask = sources()
    memory, limits = model.encode(tokens, mask), torch.tensor([5, 4, 5])
    options = {"start": START, "stop": STOP, "beam": 4, "never": (PAD, START, UNKNOWN), "length_penalty": penalty}
    ahead = beam_search([model], [memory], limits, **options)
    other, behind = model.turned(memory)
    back = beam_search([other], [behind], limits, **options) if free else [[]] * 3
    agreed = agree([model], [memory], ahead, limits, free=free, **options)
    for b, hypotheses in enumerate(agreed):
        n = int(mask[b].sum())
        alone = model.encode(tokens[b : b + 1, :n], mask[b : b + 1, :n])
        writer, mirror = model.turned(alone)
        ended = {h.tokens for h in ahead[b] if not h.cut} | {turned(h.tokens, STOP) for h in back[b] if not h.cut}

        def rank(words, alone=alone, writer=writer, mirror=mirror):
            both = cost(model, alone, words) + cost(writer, mirror, turned(words, STOP))
            return -both / 2 / len(words) ** penalty

        expected = sorted(ended or {h.tokens for h in ahead[b]}, key=rank)[: len(ahead[b])]
        assert [h.tokens for h in hypotheses] == expected
        assert [h.score for h in hypotheses] == pytest.approx([cost(model, alone, h.tokens) for h in hypotheses])


def test_what_never_ended_counts_only_where_nothing_did():
    whole, cut = Hypothesis((5, 6, STOP), -3.0, False), Hypothesis((5, 5, 5), -1.0, True)
    assert offered([cut, whole], [cut], STOP) == {whole.tokens: False}
    assert offered([cut], [cut], STOP) == {cut.tokens: True}
    assert offered([cut], [whole], STOP) == {(6, 5, STOP): False}
    assert len(offered([whole], [Hypothesis((6, 5, STOP), -2.0, False)], STOP)) == 1


LETTERS, SOUNDS = "abcdefgh", "A B C D E F G H I"


def translator(*models, counts=None):
    source, target = Tokeniser.train([LETTERS], "characters"), Tokeniser.train([SOUNDS], "symbols")
    assert len(source) <= V_SOURCE + 1
    assert len(target) == V_TARGET
    return Translator([Voice(m.float(), source, counts) for m in models], target)


@pytest.fixture
def both():
    torch.manual_seed(0)
    settings = {"family": "luong", "width": 8, "feed": False, "both_ways": True}
    model = build(ModelConfig.read(settings), len(LETTERS) + 4, V_TARGET)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return model


TEXTS = ["".join(letters) for letters in itertools.permutations("abcd", 3)]


def test_a_beam_asks_both_and_greed_asks_nobody_else(both):
    two, one = translator(both), translator(Model(both.encoder, both.decoder))
    for options in (Options(beam=1), Options(sample=True, seed=3), Options(beam=4, coverage_penalty=0.1)):
        asked = [t.translate(TEXTS, options, look=False) for t in (two, one)]
        assert [p.text for p in asked[0]] == [p.text for p in asked[1]]
    asked = [t.translate(TEXTS, Options(beam=4), look=False) for t in (two, one)]
    assert [p.text for p in asked[0]] != [p.text for p in asked[1]]


def test_among_runs_that_write_one_way_those_that_write_both_have_their_say(both):
    torch.manual_seed(1)
    other = build(ModelConfig.read({"family": "luong", "width": 8, "feed": False}), len(LETTERS) + 4, V_TARGET)
    mixed, plain = translator(both, other), translator(Model(both.encoder, both.decoder), other)
    asked = [t.translate(TEXTS, Options(beam=4, nbest=4), look=False) for t in (mixed, plain)]
    assert [p.text for p in asked[0]] != [p.text for p in asked[1]]
    forced = plain.score_all([(p.source, p.text) for p in asked[0]])
    assert [p.score for p in asked[0]] == pytest.approx([p.score for p in forced], abs=1e-4)


def test_predictions_tell_what_writing_them_from_the_start_costs(both):
    for p in translator(both).translate(TEXTS, Options(beam=4, nbest=3), others=True):
        for each in (p, *p.alternatives):
            assert each.score == pytest.approx(sum(each.log_probabilities), abs=1e-4)
            assert each.weights.shape == (len(each.target_tokens), len(each.source_tokens))


def test_a_prefix_is_kept(both):
    for p in translator(both).translate(TEXTS, Options(beam=4, nbest=2), prefix="C A"):
        assert all(each.text.startswith("C A") for each in (p, *p.alternatives))


def test_what_is_kept_is_judged_by_all_who_have_a_say(tmp_path, monkeypatch):
    from saccade.search import Translator
    from saccade.train import start
    from saccade.train.loop import Learner

    beams, translate = [], Translator.translate
    monkeypatch.setattr(
        Translator,
        "translate",
        lambda self, texts, options, **k: beams.append(options.beam) or translate(self, texts, options, **k),
    )
    for both, counts in ((True, False), (False, True), (False, False)):
        model = {"width": 24, "both_ways": both, "counts": counts}
        asked = {"data": {"train": ["copy"]}, "model": model, "train": {"steps": 1}}
        run, material = start(tmp_path / f"{both} {counts}", asked, say=lambda _: None)
        Learner(run, material.examples(run.source, run.target), material.dev[:3]).evaluate()
    assert beams == [2, 2, 1]
