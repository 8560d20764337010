"""Encoders and decoders: one step at a time is the same as all at once, alone the same as in a batch."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from problems import SCORES, assert_equal

from saccade.config import ModelConfig, RunConfig
from saccade.data import START, UNKNOWN
from saccade.errors import UsageError
from saccade.model import build
from saccade.model.loss import summed_loss
from saccade.model.recurrent_decoders import Seq2SeqDecoder
from saccade.model.walking import REACH

V_SOURCE, V_TARGET = 11, 13
RECURRENT = [
    *({"family": "seq2seq", "cell": c, "bidirectional": b} for c in ("rnn", "gru", "lstm") for b in (False, True)),
    *({"family": f, "score": s} for f in ("bahdanau", "luong") for s in SCORES),
    *(
        {"family": f, "cell": c, "layers": 2, "residual": True}
        for f in ("bahdanau", "luong")
        for c in ("rnn", "gru", "lstm")
    ),
    *(
        {"family": f, "heads": 2, "coverage": True, "score": s}
        for f in ("bahdanau", "luong")
        for s in ("additive", "dot")
    ),
    *({"family": "luong", "feed": False, "score": s, "tied": True} for s in SCORES),
    *({"family": f, "gate": True, "normalise": n} for f in ("bahdanau", "luong") for n in ("entmax15", "hard")),
    {"family": "luong", "feed": False, "gate": True, "normalise": "sparsemax"},
    {"family": "luong", "feed": False, "coverage": True},
    *({"family": "luong", "feed": False, "walk": True, "score": s} for s in SCORES),
    {"family": "luong", "feed": False, "walk": True, "cell": "gru", "layers": 2, "normalise": "entmax15", "tied": True},
    {"family": "luong", "embedding": 6},
    *({"family": f, "groups": 4, "group_rows": 50} for f in ("seq2seq", "bahdanau", "luong")),
    *(
        {"family": f, "cell": c, "cell_norm": n, "layers": 2, "between_norm": True, "variational": True}
        for f in ("seq2seq", "bahdanau", "luong")
        for c in ("rnn", "gru", "lstm")
        for n in ("layer", "batch")
    ),
]
TRANSFORMERS = [
    {"family": "transformer", "heads": 2, "layers": 2, "norm": norm, "positions": positions, "tied": True}
    for norm, positions in itertools.product(("pre", "post"), ("sinusoidal", "learned", "rotary"))
]
ALL = RECURRENT + TRANSFORMERS


def name(settings):
    return "-".join(str(v) if not isinstance(v, bool) else k if v else f"no {k}" for k, v in settings.items())


def longest(settings):
    return {} if settings["family"] == "seq2seq" else {"max_length": 20}


@pytest.fixture(params=ALL, ids=map(name, ALL))
def model(request):
    config = ModelConfig.read({"width": 8, "dropout": 0.3, **longest(request.param), **request.param})
    model = build(config, V_SOURCE, V_TARGET).double().eval()
    for parameter in model.parameters():  # zeros (biases, coverage) would hide mistakes
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def sources():
    tokens = torch.randint(1, V_SOURCE, (3, 6))
    mask = torch.arange(6) < torch.tensor([[6], [3], [1]])
    return torch.where(mask, tokens, 0), mask


def test_step_by_step_is_all_at_once(model):
    memory = model.encode(*sources())
    targets = torch.randint(V_TARGET, (3, 5))
    outputs = model.decoder(memory, targets, need_weights=True)
    logits = model.decoder.readout(outputs.hidden)
    assert_equal(model.decoder(memory, targets).hidden, outputs.hidden)
    state = model.decoder.init(memory)
    for t in range(5):
        step = model.decoder.step(memory, state, targets[:, t : t + 1])
        state = step.state
        assert_equal(step.logits[:, 0], logits[:, t])
        if outputs.weights is None:
            assert step.weights is None
        else:
            assert_equal(step.weights[:, 0], outputs.weights[:, t])
            assert_equal(step.weights.sum(-1), torch.ones_like(step.weights.sum(-1)))


def test_padding_is_invisible(model):
    tokens, mask = sources()
    targets = torch.randint(V_TARGET, (3, 4))
    together = model.decoder(model.encode(tokens, mask), targets, need_weights=True)
    for b in range(3):
        n = int(mask[b].sum())
        alone = model.decoder(
            model.encode(tokens[b : b + 1, :n], mask[b : b + 1, :n]), targets[b : b + 1], need_weights=True
        )
        assert_equal(alone.hidden[0], together.hidden[b])
        if alone.weights is not None:
            assert_equal(alone.weights[0], together.weights[b, ..., :n])
            assert (together.weights[b, ..., n:] == 0).all()


def test_hypotheses_are_each_as_if_alone(model):
    memory = model.encode(*sources())
    words = torch.randint(V_TARGET, (3, 4, 3))  # [B, K, t]
    beam = model.decoder.init(memory, 4)
    for t in range(3):
        step = model.decoder.step(memory, beam, words[:, :, t])
        beam = step.state
    for k in range(4):
        state = model.decoder.init(memory)
        for t in range(3):
            alone = model.decoder.step(memory, state, words[:, k : k + 1, t])
            state = alone.state
        assert_equal(step.logits[:, k], alone.logits[:, 0])


def test_hypotheses_change_places_and_sentences_leave(model):
    memory = model.encode(*sources())
    first = model.decoder.step(memory, model.decoder.init(memory, 2), torch.tensor([[1, 2], [3, 4], [5, 6]]))
    rows, order = torch.tensor([0, 2]), torch.tensor([[1, 1], [1, 0]])
    state = first.state.select(rows).reorder(order)
    words = torch.tensor([[7, 8], [9, 10]])
    after = model.decoder.step(memory.select(rows), state, words)
    straight = {
        (b, k): model.decoder.step(memory, first.state, torch.full((3, 2), w))
        for b, k, w in [(0, 0, 7), (0, 1, 8), (1, 0, 9), (1, 1, 10)]
    }
    for (b, k), step in straight.items():
        assert_equal(after.logits[b, k], step.logits[rows[b], order[b, k]])


def test_it_learns_a_little(model):
    """One batch, forty steps: the loss falls, and every parameter was reached by the gradient."""
    model = model.float()  # without dropout: what is tested is the way of the gradient
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.3, 0.3)
    tokens, mask = sources()
    given, wanted = torch.randint(V_TARGET, (3, 5)), torch.randint(V_TARGET, (3, 5))
    real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = model(tokens, mask, given, wanted, real) / real.sum()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.9 * sum(losses[:5])
    assert [n for n, p in model.named_parameters() if p.grad is None] == []


def test_products_in_bfloat16_point_the_same_way(model):
    """Every family can be trained with autocast: the loss is a float32, and the gradient's way that of float32."""
    model = model.float()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -0.3, 0.3)
    tokens, mask = sources()
    given, wanted = torch.randint(V_TARGET, (3, 5)), torch.randint(V_TARGET, (3, 5))
    real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    losses, ways = [], []
    for rounded in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
            loss = model(tokens, mask, given, wanted, real, 0.1)
        slopes = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True, materialize_grads=True)
        losses.append(loss)
        ways.append(torch.cat([slope.flatten() for slope in slopes]))
    assert losses[1].dtype == torch.float32
    torch.testing.assert_close(losses[1], losses[0], atol=0, rtol=2e-2)
    assert torch.cosine_similarity(*ways, dim=0) > 0.98


def test_the_loss_sees_real_words_only(model):
    tokens, mask = sources()
    given, wanted = torch.randint(V_TARGET, (3, 5)), torch.randint(V_TARGET, (3, 5))
    real = torch.arange(5) < torch.tensor([[5], [2], [4]])
    total = model(tokens, mask, given, wanted, real)
    logits = model.decoder.readout(model.decoder(model.encode(tokens, mask), given).hidden)
    by_hand = -sum(logits[b, t].log_softmax(-1)[wanted[b, t]] for b in range(3) for t in range(5) if real[b, t])
    assert_equal(total, by_hand)
    assert_equal(total, model(tokens, mask, given, torch.where(real, wanted, 0), real))


@pytest.mark.parametrize("lengths", [[(5, 2), (4, 0), (3, 2)], [(2, 5), (1, 1), (3, 3)]])  # of one source there is one
def test_several_targets_of_a_source_are_read_as_each_would_be_alone(model, lengths):
    tokens, mask = sources()
    memory = model.encode(tokens, mask)
    targets = torch.randint(V_TARGET, (3, 2, 5))
    together = model.decoder(memory, targets, need_weights=True)
    assert together.hidden.shape[:3] == (3, 2, 5)
    for k in range(2):
        alone = model.decoder(memory, targets[:, k], need_weights=True)
        assert_equal(together.hidden[:, k], alone.hidden)
        if alone.weights is not None:
            assert_equal(together.weights[:, k], alone.weights)
    real = torch.arange(5) < torch.tensor(lengths).unsqueeze(-1)
    terms = {"smoothing": 0.1, "doubly_stochastic": 0.5, "diagonal": 0.5}
    total = model(tokens, mask, targets, targets, real, **terms)
    rows = [(b, k) for b in range(3) for k in range(2) if real[b, k].any()]
    apart = sum(
        model(*(x[b : b + 1] for x in (tokens, mask)), *(x[b, k : k + 1] for x in (targets, targets, real)), **terms)
        for b, k in rows
    )
    assert_equal(total, apart)


def test_hidden_words_leave_the_source_to_tell(model):
    tokens, mask = sources()
    given, wanted = torch.randint(3, V_TARGET, (3, 5)), torch.randint(V_TARGET, (3, 5))
    given[:, 0] = START
    real = torch.ones(3, 5, dtype=torch.bool)
    nothing = torch.where(given == START, given, UNKNOWN)
    assert_equal(
        model(tokens, mask, given, wanted, real, word_dropout=0.999999), model(tokens, mask, nothing, wanted, real)
    )
    torch.manual_seed(0)
    some = model(tokens, mask, given, wanted, real, word_dropout=0.5)
    assert some.item() not in (model(tokens, mask, given, wanted, real).item(),)


def test_every_walk_over_the_source_is_summed():
    config = ModelConfig.read({"family": "luong", "width": 8, "feed": False, "walk": True, "dropout": 0})
    model = build(config, V_SOURCE, V_TARGET).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    memory = model.encode(torch.randint(1, V_SOURCE, (1, 9)), torch.ones(1, 9, dtype=torch.bool))
    targets = torch.tensor([[2, 5, 3, 7]])  # START and three words: what is each worth, given those before?
    logits = model.decoder.readout(model.decoder(memory, targets).hidden)[0].detach()
    torch.testing.assert_close(logits.exp().sum(-1), torch.ones(4).double())

    states = model.decoder.cells(model.decoder.embed(targets), model.decoder.init(memory)["cells"][:, 0])[
        0
    ]  # [1, T, D]
    ways, said = model.decoder._ways(memory, states, None)
    liked, ease, said = (x[0].detach() for x in (ways.liked, ways.ease, said))  # [T, N], [T, 2·REACH + 1], [T, N, V]
    distance = torch.arange(9) - torch.arange(-1, 9).unsqueeze(1)  # [N + 1, N]: to n, from m or from before the first
    jumps = liked.unsqueeze(1) * ease[:, distance.clamp(-REACH, REACH) + REACH]  # [T, N + 1, N]
    jumps = jumps / jumps.sum(-1, keepdim=True)
    whole = 0.0
    for walk in itertools.product(range(9), repeat=3):
        share, place = 1.0, -1
        for t, n in enumerate(walk):
            share *= float(jumps[t, place + 1, n] * said[t, n, targets[0, t + 1]])
            place = n
        whole += share
    told = sum(float(logits[t, targets[0, t + 1]]) for t in range(3))
    assert math.exp(told) == pytest.approx(whole)


def test_a_walk_goes_on_after_a_word_that_no_place_explains():
    config = ModelConfig.read({"family": "luong", "width": 8, "feed": False, "walk": True, "dropout": 0})
    model = build(config, V_SOURCE, V_TARGET).double().eval()
    torch.nn.init.constant_(model.decoder.output.bias[5:6], -1e5)
    memory = model.encode(torch.randint(3, V_SOURCE, (1, 9)), torch.ones(1, 9, dtype=torch.bool))
    weights = model.decoder(memory, torch.tensor([[1, 4, 5, 6, 7]]), need_weights=True).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))


def test_a_long_walk_is_worked_out_in_parts(monkeypatch):
    config = ModelConfig.read({"family": "luong", "width": 8, "feed": False, "walk": True, "dropout": 0})
    model = build(config, V_SOURCE, V_TARGET).double()
    tokens, given = torch.randint(3, V_SOURCE, (2, 9)), torch.randint(3, V_TARGET, (2, 7))
    real = torch.ones(2, 7, dtype=torch.bool)

    def learned():
        loss = model(tokens, torch.ones(2, 9, dtype=torch.bool), given, given, real)
        return loss, *torch.autograd.grad(loss, list(model.parameters()))

    whole = learned()
    monkeypatch.setattr("saccade.model.walking.HELD", 2 * 9 * 8 * 3)  # three words at a time
    for mine, theirs in zip(learned(), whole, strict=True):
        assert_equal(mine, theirs)


@pytest.mark.parametrize(("name", "value"), [("feed", True), ("heads", 2), ("gate", True), ("coverage", True)])
def test_a_walk_says_what_it_does_not_go_with(name, value):
    with pytest.raises(ValueError, match=f"walk: goes with {name}="):
        ModelConfig.read({"family": "luong", "feed": False, "walk": True, name: value})


def test_a_misspelt_setting_is_named():
    with pytest.raises(ValueError, match="unknown key 'famly'; did you mean 'family'"):
        ModelConfig.read({"famly": "luong"})
    with pytest.raises(UsageError, match="settings: family: unknown family 'bahdanaw'; did you mean 'bahdanau'"):
        ModelConfig.read({"family": "bahdanaw"})
    with pytest.raises(UsageError, match=r"unknown key 'image.widht'; did you mean 'image.w"):
        RunConfig.read({"image": {"widht": 3}})
    with pytest.raises(ValueError, match=r"config.toml: format: unknown format 7 \(known: 1\)") as error:
        RunConfig.read({"format": 7}, "config.toml")
    assert not isinstance(error.value, UsageError)  # nobody asked for that
    with pytest.raises(ValueError, match="heads: 3, expected a number that divides width=8"):
        ModelConfig.read({"width": 8, "heads": 3})


def looking(model):
    return not isinstance(model.decoder, Seq2SeqDecoder)


def test_what_is_hidden_by_a_look_might_as_well_be_padding(model):
    """The occlusion check: a boolean look over everything but the first places is a shorter mask for the decoder."""
    if not looking(model):
        return
    tokens, mask = sources()
    memory = model.encode(tokens, mask)
    targets = torch.randint(V_TARGET, (3, 5))
    shown = torch.arange(6) < 2
    hidden = model.decoder(memory, targets, need_weights=True, look=shown.view(1, 1, 6).expand(3, 1, 6))
    shorter = model.decoder(replace(memory, mask=mask & shown), targets, need_weights=True)
    assert_equal(hidden.hidden, shorter.hidden)
    assert_equal(hidden.weights, shorter.weights)


def test_a_look_that_gives_the_weights_is_obeyed_step_by_step_and_all_at_once(model):
    if not looking(model):
        return
    memory = model.encode(*sources())
    targets = torch.randint(V_TARGET, (3, 5))
    given = torch.rand(3, 5, 6, dtype=torch.float64).softmax(-1) * memory.mask.unsqueeze(1)
    outputs = model.decoder(memory, targets, need_weights=True, look=given)
    for layer in outputs.weights.unbind(2):
        for head in layer.unbind(2):
            assert_equal(head, given)
    state = model.decoder.init(memory)
    for t in range(5):
        step = model.decoder.step(memory, state, targets[:, t : t + 1], look=given[:, t : t + 1])
        state = step.state
        assert_equal(step.logits, model.decoder.readout(outputs.hidden[:, t : t + 1]))


def test_weights_looked_at_twice_change_nothing(model):
    """To give a decoder back the weights it had is to leave it alone, where heads and layers agree on them."""
    memory = model.encode(*sources())
    targets = torch.randint(V_TARGET, (3, 5))
    free = model.decoder(memory, targets, need_weights=True)
    if free.weights is None or free.weights.shape[2:4] != (1, 1):
        return
    again = model.decoder(memory, targets, need_weights=True, look=free.weights[:, :, 0, 0])
    assert_equal(again.hidden, free.hidden)


def test_two_readings_that_agree_cost_nothing_and_two_that_do_not_cost_something():
    torch.manual_seed(0)
    pairs = (torch.randint(4, 9, (3, 5)), torch.ones(3, 5, dtype=torch.bool), *torch.randint(4, 9, (2, 3, 4)))
    real = torch.tensor([4, 2, 3])[:, None] > torch.arange(4)
    for dropout in (0.0, 0.5):
        model = build(ModelConfig.read({"family": "luong", "width": 8, "dropout": dropout}), 9, 9).double().train()
        torch.manual_seed(1)
        loss = model(*pairs, real, 0.1, 0.0, 5.0)
        torch.manual_seed(1)
        without = model(*pairs, real, 0.1, 0.0, 1e-12)  # the same two readings, hardly asked to agree
        if dropout:
            assert loss > without + 1e-3
        else:
            torch.testing.assert_close(loss, model(*pairs, real, 0.1))
            assert loss == without


@pytest.mark.parametrize("family", ["bahdanau", "luong", "transformer"])
def test_looking_at_everything_about_once_is_asked_for_only_where_it_is(family):
    torch.manual_seed(0)
    pairs = (torch.randint(4, 9, (3, 5)), torch.tensor([5, 3, 4])[:, None] > torch.arange(5))
    words = torch.randint(4, 9, (2, 3, 4))
    real = torch.tensor([4, 2, 3])[:, None] > torch.arange(4)
    model = build(ModelConfig.read({"family": family, "width": 8, "dropout": 0.0}), 9, 9).double().train()
    plain = model(*pairs, *words, real)
    weights = model.decoder(model.encode(*pairs), words[0], need_weights=True).weights
    by_hand = 0.0
    for b in range(3):
        seen = weights[b, real[b]].sum(0)[..., pairs[1][b]]  # [L, H, N]
        by_hand += ((1 - seen) ** 2).sum(-1).mean().item()
    asked = model(*pairs, *words, real, 0.0, 0.0, 0.0, 0.7)
    assert asked.item() == pytest.approx(plain.item() + 0.7 * by_hand)


@pytest.mark.parametrize("family", ["bahdanau", "luong", "transformer"])
def test_guided_attention_costs_what_it_strays_and_pulls_it_to_the_diagonal(family):
    torch.manual_seed(0)
    tokens, mask = torch.randint(4, 9, (2, 6)), torch.tensor([6, 4])[:, None] > torch.arange(6)
    words, real = torch.randint(4, 9, (2, 2, 5)), torch.tensor([5, 2])[:, None] > torch.arange(5)
    model = build(ModelConfig.read({"family": family, "width": 8, "dropout": 0.0}), 9, 9).double().train()
    pairs = (tokens, mask, *words, real)

    def strayed() -> float:
        weights = model.decoder(model.encode(tokens, mask), words[0], need_weights=True).weights.mean((2, 3))
        total = 0.0
        for b, (read, written) in enumerate(((6, 5), (4, 2))):
            for t in range(written):
                for n in range(read):
                    apart = (n + 0.5) / read - (t + 0.5) / written
                    total += weights[b, t, n].item() * (1 - math.exp(-(apart**2) / (2 * 0.15**2)))
        return total

    by_hand = strayed()
    assert model(*pairs, 0.0, 0.0, 0.0, 0.0, 3.0).item() == pytest.approx(model(*pairs).item() + 3 * by_hand)
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(40):
        optimiser.zero_grad()
        (model(*pairs, 0.0, 0.0, 0.0, 0.0, 100.0) - model(*pairs)).backward()
        optimiser.step()
    assert strayed() < 0.5 * by_hand


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_the_loss_is_that_of_torch(smoothing):
    logits = (3 * torch.randn(7, 11, dtype=torch.float64)).requires_grad_()
    wanted = torch.randint(11, (7,))
    ours = summed_loss(logits, wanted, smoothing)
    theirs = torch.nn.functional.cross_entropy(logits, wanted, label_smoothing=smoothing, reduction="sum")
    assert_equal(ours, theirs)
    assert_equal(*(torch.autograd.grad(2.5 * loss, logits)[0] for loss in (ours, theirs)))
    assert torch.autograd.gradcheck(lambda z: summed_loss(z, wanted, smoothing), logits)
    huge = torch.tensor([[1e4, -1e4]], requires_grad=True)
    loss = summed_loss(huge, torch.tensor([1]), smoothing)
    assert torch.isfinite(loss)
    assert torch.isfinite(torch.autograd.grad(loss, huge)[0]).all()
    rounded = logits.detach().bfloat16().requires_grad_()  # as autocast gives them
    loss = summed_loss(rounded, wanted, smoothing)
    assert_equal(loss, summed_loss(rounded.float(), wanted, smoothing))
    assert torch.autograd.grad(loss, rounded)[0].dtype == torch.bfloat16
