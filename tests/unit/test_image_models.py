"""Models of pictures: every family over every encoder, and the laws that hold for text hold here too."""

import itertools
from typing import get_args

import pytest
import torch

from saccade.config import ModelConfig
from saccade.config.image import ImageConfig
from saccade.config.model import Score
from saccade.data.tokenisers import START, STOP
from saccade.model import Model, build
from saccade.model.images import CNN, Change, ImageEncoder
from saccade.search.beam import beam_search
from saccade.search.force import force

FAMILIES = ("seq2seq", "bahdanau", "luong", "transformer")
ENCODERS = ("cnn", "attentive_cnn", "patches")


def make(family: str, encoder: str = "cnn", dropout: float = 0.0, settings: object = (), **image: object) -> Model:
    torch.manual_seed(0)
    read = ImageConfig.read(
        {"height": 16, "width": 24, "encoder": encoder, "channels": 16, "stride": 4, "near": True, **image}
    )
    return build(ModelConfig.read({"family": family, "width": 16, "dropout": dropout, **dict(settings)}), read, 11)


def pictures(batch: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(1)
    pixels = torch.randint(0, 256, (batch, 3, 16, 24), dtype=torch.uint8)
    sizes = torch.tensor([[16, 24], [7, 24], [16, 9]])[:batch]
    for one, (height, width) in zip(pixels, sizes.tolist(), strict=True):
        one[:, height:] = 0
        one[:, :, width:] = 0
    return pixels, sizes


@pytest.mark.parametrize(("family", "encoder"), list(itertools.product(FAMILIES, ENCODERS)))
def test_every_family_learns_from_every_encoder_and_writes(family, encoder):
    model = make(family, encoder, dropout=0.1).train()
    words = torch.randint(4, 11, (3, 5))
    real = torch.tensor([5, 2, 4])[:, None] > torch.arange(5)
    loss = model(*pictures(), words, words.roll(-1, 1), real)
    loss.backward()
    used = [p for name, p in model.encoder.named_parameters() if family != "transformer" or not name.startswith("pool")]
    assert all(p.grad is not None and p.grad.isfinite().all() for p in used)  # a Transformer needs no summary
    with torch.no_grad():
        memory = model.eval().encode(*pictures())
        found = beam_search([model], [memory], torch.tensor([6] * 3), start=START, stop=STOP, beam=3)
        assert [len(h) for h in found] == [3] * 3
        if family != "seq2seq":
            targets = torch.tensor([found[0][0].tokens])
            one = memory.select(torch.tensor([0]))
            weights = force([model], [one], targets, start=START).weights
            assert weights.shape[-1] == 24  # cells
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))


@pytest.mark.parametrize("settings", [{}, {"heads": 2}, {"normalise": "hard", "gate": True}], ids=str)
@pytest.mark.parametrize(("family", "score"), list(itertools.product(("bahdanau", "luong"), get_args(Score))))
def test_every_score_looks_at_pictures_too(family, score, settings):
    model = make(family, settings={"score": score, **settings}).train()
    words = torch.randint(4, 11, (3, 5))
    loss = model(*pictures(), words, words.roll(-1, 1), torch.ones(3, 5, dtype=torch.bool), 0.1, 0.0, 0.0, 1.0)
    loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)  # places alone need no keys
    with torch.no_grad():
        memory = model.eval().encode(*pictures())
        weights = model.decoder(memory, words, need_weights=True).weights  # [B, T, L, H, N]
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
    assert not weights[~memory.mask[:, None, None, None].expand_as(weights)].any()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_picture_alone_is_a_picture_in_company(encoder):
    model = make("luong", encoder).double().eval()
    pixels, sizes = pictures()
    with torch.no_grad():
        together = model.encode(pixels, sizes)
        for i in range(3):
            alone = model.encode(pixels[i : i + 1], sizes[i : i + 1])
            torch.testing.assert_close(alone.keys[0], together.keys[i], rtol=0, atol=1e-10)
            torch.testing.assert_close(alone.summary[0], together.summary[i], rtol=0, atol=1e-10)


def test_only_cells_with_something_in_them_are_looked_at():
    encoder = make("luong").encoder
    assert isinstance(encoder, ImageEncoder)
    real = encoder.real(torch.tensor([[16, 24], [7, 24], [16, 9], [1, 1]])).view(4, 4, 6)
    assert real[0].all()
    assert real[1].tolist() == [[True] * 6] * 2 + [[False] * 6] * 2
    assert real[2].tolist() == [[True] * 3 + [False] * 3] * 4
    assert real[3].sum() == 1


@pytest.mark.parametrize("stride", [4, 8, 16])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_the_grid_is_as_fine_as_asked(stride, encoder):
    model = make("bahdanau", encoder, height=32, width=48, stride=stride)
    memory = model.encode(torch.zeros(2, 3, 32, 48, dtype=torch.uint8), torch.tensor([[32, 48]] * 2))
    assert memory.keys.shape == (2, 32 * 48 // stride**2, 16)


def test_what_training_changes():
    x, sizes = torch.rand(200, 3, 16, 16), torch.tensor([[16, 16]] * 200)
    assert torch.equal(Change(ImageConfig(height=16, width=16))(x, sizes), x)
    flipped = Change(ImageConfig(height=16, width=16, flip=True))(x, sizes)
    turned = torch.tensor([torch.equal(a, b.flip(-1)) for a, b in zip(flipped, x, strict=True)])
    assert 60 < turned.sum() < 140
    assert torch.equal(flipped[~turned], x[~turned])
    dot = torch.zeros(200, 3, 16, 16)
    dot[:, :, 8, 8] = 1
    moved = Change(ImageConfig(height=16, width=16, shift=0.25))(dot, sizes)
    places = moved[:, 0].flatten(1).argmax(1)
    assert (moved.flatten(1).sum(1) == 3).all()
    assert len(places.unique()) > 30
    assert ((places // 16 - 8).abs() <= 4).all()
    lit = Change(ImageConfig(height=16, width=16, colour=0.3))(torch.ones(200, 3, 16, 16), sizes)
    assert lit.std((2, 3)).max() < 1e-6  # the same everywhere in a picture
    assert lit[:, 0, 0, 0].std() > 0.05
    assert lit.min() >= 0.4 - 1e-6


def test_what_is_cropped_is_a_part_enlarged():
    ramp = torch.arange(32.0).expand(200, 3, 32, 32).clone()  # each pixel tells its column
    sizes = torch.tensor([[32, 32]] * 200)
    seen = Change(ImageConfig(height=32, width=32, crop=0.5))(ramp, sizes)[:, 0, 0]  # [B, W]
    assert (seen.diff() >= 0).all()
    share = (seen[:, -1] - seen[:, 0] + 1) / 32
    assert share.min() >= 0.45
    assert share.max() <= 1
    assert share.std() > 0.05  # each picture by itself
    assert len(seen[:, 0].unique()) > 5  # wherever it begins
    both = Change(ImageConfig(height=32, width=32, crop=0.5))(ramp + 100 * ramp.mT, sizes)[:, 0]  # and their rows
    across, down = both[:, 0, -1] % 100 - both[:, 0, 0] % 100, (both[:, -1, 0] - both[:, 0, 0]) // 100
    assert (across - down).abs().max() <= 1  # the aspect stays


def test_what_training_changes_stays_within_each_picture():
    x = torch.zeros(100, 3, 16, 16)
    sizes = torch.tensor([[7, 9]] * 100)
    x[:, :, :7, :9] = 1 + torch.rand(100, 3, 7, 9)
    changed = Change(ImageConfig(height=16, width=16, shift=0.3, crop=0.3, flip=True))(x, sizes)
    assert (changed[:, :, :7, :9] >= 1).all()
    assert not changed[:, :, 7:].any()
    assert not changed[:, :, :, 9:].any()


def test_settings_that_do_not_fit():
    with pytest.raises(ValueError, match="height: 30, expected a multiple of stride=8"):
        ImageConfig.read({"height": 30})
    with pytest.raises(ValueError, match="channels: 20, expected a multiple of 8"):
        ImageConfig.read({"channels": 20})


@torch.no_grad()
@pytest.mark.parametrize("stride", [4, 8, 16])
def test_a_cell_sees_its_own_pixels_best(stride):
    """What a change of one pixel changes lies around the cell that it is in, on both sides alike."""
    torch.manual_seed(0)
    side = 12 * stride
    cnn = CNN(ImageConfig(height=side, width=side, stride=stride, channels=16), 0.0).double().eval()
    for layer in cnn.modules():  # weights without a direction of their own, and no norm over the whole picture
        if isinstance(layer, torch.nn.Conv2d):
            torch.nn.init.constant_(layer.weight, 0.01)
        if isinstance(layer, torch.nn.Sequential):
            for i, part in enumerate(layer):
                if isinstance(part, torch.nn.GroupNorm):
                    layer[i] = torch.nn.Identity()
    for cell in (5, 6):
        picture = torch.zeros(1, 3, side, side, dtype=torch.float64)
        picture[:, :, cell * stride : (cell + 1) * stride] = 1  # the rows of one cell
        seen = cnn(picture, torch.ones(1, 144, dtype=torch.bool))[0][0].sum((0, 2))  # [h]
        centre = float((seen * torch.arange(len(seen))).sum() / seen.sum())
        assert centre == pytest.approx(cell, abs=0.01)


def test_a_line_of_writing_is_read_along_its_columns():
    model = make("luong", height=8, width=32)
    pixels = torch.randint(0, 256, (2, 3, 8, 32), dtype=torch.uint8)
    memory = model.encode(pixels, torch.tensor([[8, 32], [8, 16]]))
    whole, half = memory.along.view(2, 2, 8)  # [B, h, w]
    assert torch.allclose(whole, ((torch.arange(8) + 0.5) / 8).expand(2, 8))
    assert torch.allclose(half[:, :4], ((torch.arange(4) + 0.5) / 4).expand(2, 4))
    assert torch.equal(memory.select(torch.tensor([1])).along, memory.along[1:])
    given, real = torch.randint(3, 11, (2, 1, 4)), torch.ones(2, 1, 4, dtype=torch.bool)
    cost = [model(pixels, torch.tensor([[8, 32], [8, 16]]), given, given, real, diagonal=d).item() for d in (0.0, 1.0)]
    assert 0 < cost[1] - cost[0] < 8  # no more than one for each word


def test_light_changes_within_the_picture_alone():
    pixels, sizes = pictures()
    x = pixels.float()
    torch.manual_seed(0)
    changed = Change(ImageConfig(colour=0.5))(x, sizes)
    for one, was, (height, width) in zip(changed, x, sizes.tolist(), strict=True):
        assert not torch.equal(one[:, :height, :width], was[:, :height, :width])
        assert torch.equal(one[:, height:], was[:, height:])
        assert torch.equal(one[:, :, width:], was[:, :, width:])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_widths_that_do_not_divide_well(encoder):
    read = ImageConfig.read({"height": 16, "width": 24, "encoder": encoder, "channels": 24, "stride": 8})
    model = build(ModelConfig.read({"family": "luong", "width": 30}), read, 11)
    assert model.encode(*pictures()).keys.shape == (3, 6, 30)
