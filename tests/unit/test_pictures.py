"""Pictures: whatever is in a file, it becomes upright RGB in its frame, or one clear line."""

import io
import json
import shutil
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saccade.data import Frame, Pair, Skipped, Source, gather, load_source, numbered
from saccade.data import pictures as room
from saccade.data.captions import Album
from saccade.data.pictures import file_key, load_pictures, open_picture
from saccade.data.plates import text_of
from saccade.data.scenes import KEPT, scene
from saccade.data.tokenisers import Tokeniser


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))


def saved(path, picture, **options):
    picture.save(path, **options)
    return path


def gradient(width=40, height=30, mode="RGB"):
    x = np.linspace(0, 255, width)[None, :] + 0 * np.arange(height)[:, None]
    return Image.fromarray(x.astype(np.uint8)).convert(mode)


class TestOpening:
    @pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "RGBA", "LA", "CMYK"])
    @pytest.mark.parametrize("ending", ["png", "tiff"])
    def test_every_mode_becomes_rgb(self, tmp_path, mode, ending):
        ending = "tiff" if mode == "CMYK" else ending  # PNG has none
        opened = open_picture(saved(tmp_path / f"a.{ending}", gradient(mode=mode)))
        assert (opened.mode, opened.size) == ("RGB", (40, 30))

    def test_cmyk_jpeg(self, tmp_path):
        assert open_picture(saved(tmp_path / "a.jpg", gradient(mode="CMYK"))).mode == "RGB"

    def test_sixteen_bits_keep_their_range(self, tmp_path):
        deep = Image.fromarray((np.linspace(0, 65535, 40)[None, :] + np.zeros((30, 1))).astype(np.uint16))
        pixels = np.asarray(open_picture(saved(tmp_path / "a.png", deep)))
        assert pixels.min() == 0
        assert pixels.max() == 255
        assert 120 < pixels[0, 20, 0] < 136

    @pytest.mark.parametrize("ending", ["png", "tiff", "pgm"])
    def test_a_dark_picture_of_sixteen_bits_is_dark(self, tmp_path, ending):
        deep = Image.fromarray(np.array([[0, 200], [256, 600]], np.uint16))
        found = np.asarray(open_picture(saved(tmp_path / f"a.{ending}", deep)))[:, :, 0]
        assert found.tolist() == [[0, 0], [1, 2]]

    @pytest.mark.parametrize(
        ("lightest", "kind"), [(1, np.float32), (255, np.float32), (65535, np.int32), (2**30, np.int32)]
    )
    def test_what_is_white_in_a_tiff_of_32_bits_is_seen_from_its_lightest_place(self, tmp_path, lightest, kind):
        numbers = Image.fromarray(np.array([[0, lightest / 2, lightest]]).astype(kind))
        found = np.asarray(open_picture(saved(tmp_path / "a.tiff", numbers)))[0, :, 0]
        assert np.abs(found.astype(int) - [0, 127, 255]).max() <= 1

    def test_every_message_names_its_file(self, tmp_path):
        (tmp_path / "a.ppm").write_text("P3 x y 255 1 2 3")
        with pytest.raises(ValueError, match=r"a\.ppm: cannot be read"):
            open_picture(tmp_path / "a.ppm")

    def test_an_animation_shows_its_first_frame(self, tmp_path):
        frames = [Image.new("RGB", (8, 8), c) for c in ("red", "blue")]
        path = saved(tmp_path / "a.gif", frames[0], save_all=True, append_images=frames[1:])
        with pytest.warns(UserWarning, match=r"a\.gif: has several frames, of which the first is read"):
            assert np.asarray(open_picture(path))[0, 0].tolist() == [255, 0, 0]
        shutil.copy(path, tmp_path / "b.gif")
        for _ in range(2):  # decoded, and from the cache
            with pytest.warns(UserWarning, match="several frames") as told:
                load_pictures([str(path), str(tmp_path / "b.gif")], Frame(8, 8), open_picture, file_key)
            assert [str(w.message).split("/")[-1] for w in told] == [
                "a.gif: has several frames, of which the first is read (and 1 more)"
            ]

    def test_what_is_transparent_is_white(self, tmp_path):
        path = saved(tmp_path / "a.png", Image.new("RGBA", (4, 4), (0, 0, 0, 0)))
        assert np.asarray(open_picture(path)).min() == 255

    def test_a_camera_on_its_side(self, tmp_path):
        exif = Image.Exif()
        exif[0x0112] = 6  # turned by 90 degrees
        assert open_picture(saved(tmp_path / "a.jpg", gradient(40, 30), exif=exif)).size == (30, 40)

    def test_a_camera_that_wrote_nonsense_about_itself(self, tmp_path, monkeypatch):
        def fail(_picture):
            raise struct.error("unpack requires more bytes")

        monkeypatch.setattr(room.ImageOps, "exif_transpose", fail)
        assert open_picture(saved(tmp_path / "a.jpg", gradient())).size == (40, 30)

    def test_a_text_named_jpg(self, tmp_path):
        (tmp_path / "a.jpg").write_text("not a picture")
        with pytest.raises(ValueError, match=r"a\.jpg: is no picture"):
            open_picture(tmp_path / "a.jpg")

    def test_a_format_that_is_not_allowed(self, tmp_path):
        with pytest.raises(ValueError, match="is no picture"):
            open_picture(saved(tmp_path / "a.eps", gradient()))

    def test_half_a_file(self, tmp_path):
        noise = Image.fromarray(np.random.default_rng(0).integers(0, 255, (80, 80, 3), dtype=np.uint8))
        path = saved(tmp_path / "a.jpg", noise)
        path.write_bytes(path.read_bytes()[:1500])
        with pytest.raises(ValueError, match=r"a\.jpg: cannot be read"):
            open_picture(path)

    def test_a_bomb_is_refused_by_its_header(self, tmp_path, monkeypatch):
        large = saved_bytes(gradient())
        monkeypatch.setattr(room, "MOST_PIXELS", 1000)
        monkeypatch.setattr(Image.Image, "load", lambda _: pytest.fail("decoded"))
        with pytest.raises(ValueError, match="40×30 pixels, more than 1,000"):
            open_picture(large)

    def test_a_bomb_that_pillow_itself_refuses_is_told_in_our_words(self, monkeypatch):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
        monkeypatch.setattr(room, "MOST_PIXELS", 100)
        with pytest.raises(room.TooLargeError, match=r"^the picture: 1,200 pixels, more than 100$") as told:
            open_picture(saved_bytes(gradient()))
        assert told.value.pixels == 1200

    def test_a_large_photograph_is_decoded_no_larger_than_its_frame_needs(self, tmp_path):
        path = saved(tmp_path / "a.jpg", gradient(1600, 1200))
        small = open_picture(path, side=64)
        assert small.size == (200, 150)
        assert open_picture(path, side=1000).size == (1600, 1200)
        frame = Frame(32, 32)
        whole, part = (frame.fit(p) for p in (open_picture(path), open_picture(path, side=frame.side)))
        assert whole.size == part.size
        assert np.abs(whole.pixels.astype(int) - part.pixels.astype(int)).max() <= 3

    @pytest.mark.parametrize(("turned", "size"), [(1, (40, 30)), (3, (40, 30)), (6, (30, 40)), (8, (30, 40))])
    def test_the_size_is_known_without_decoding(self, tmp_path, monkeypatch, turned, size):
        exif = Image.Exif()
        exif[0x0112] = turned
        path = saved(tmp_path / "a.jpg", gradient(40, 30), exif=exif)
        assert open_picture(path).size == size
        monkeypatch.setattr(Image.Image, "load", lambda _: pytest.fail("decoded"))
        assert room.size_of(path) == size

    def test_no_file(self, tmp_path):
        with pytest.raises(ValueError, match=r"gone\.png: No such file"):
            open_picture(tmp_path / "gone.png")
        with pytest.raises(ValueError, match="Is a directory"):
            open_picture(tmp_path)

    @given(
        st.binary(max_size=200),
        st.sampled_from([b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF1234WEBP", b"BM"]),
    )
    def test_random_bytes_are_a_picture_or_one_line(self, rest, start):
        try:
            assert open_picture(start + rest).mode == "RGB"
        except ValueError as error:
            assert "\n" not in str(error)


def saved_bytes(picture) -> bytes:
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


class TestFrames:
    @given(st.integers(1, 300), st.integers(1, 300), st.integers(8, 64), st.integers(8, 64))
    def test_the_aspect_is_kept_within_a_pixel(self, width, height, frame_width, frame_height):
        pixels, (h, w), _ = Frame(frame_height, frame_width).fit(Image.new("RGB", (width, height), "white"))
        assert pixels.shape == (frame_height, frame_width, 3)
        assert h == frame_height or w == frame_width
        share = min(frame_height / height, frame_width / width)
        assert abs(h - max(1, height * share)) <= 0.5 + 1e-9
        assert abs(w - max(1, width * share)) <= 0.5 + 1e-9
        assert (pixels[:h, :w] == 255).all()
        assert not pixels[h:].any()
        assert not pixels[:, w:].any()

    def test_one_pixel_and_a_very_long_line(self):
        assert Frame(16, 16).fit(Image.new("RGB", (1, 1))).size == (16, 16)
        assert Frame(16, 16).fit(Image.new("RGB", (20_000, 1))).size == (1, 16)


class TestCache:
    def test_decoded_once_and_keyed_by_what_is_in_the_files(self, tmp_path):
        paths = [str(saved(tmp_path / f"{i}.png", gradient(30 + i))) for i in range(3)]
        count = []

        def load(source):
            count.append(source)
            return open_picture(source)

        first, broken = load_pictures(paths, Frame(16, 16), load, file_key)
        again, _ = load_pictures(paths, Frame(16, 16), load, file_key)
        assert count == paths
        assert broken == {}
        assert (first.pixels == again.pixels).all()
        assert again.get(paths[1]).size == first.get(paths[1]).size
        assert first.get("another") is None
        load_pictures(paths, Frame(8, 8), load, file_key)
        saved(tmp_path / "1.png", gradient(50))
        load_pictures(paths, Frame(16, 16), load, file_key)
        assert len(count) == 9  # another frame, other content

    def test_a_broken_picture_is_named_and_the_rest_goes_on(self, tmp_path):
        good = str(saved(tmp_path / "a.png", gradient()))
        (tmp_path / "b.png").write_bytes(b"nothing")
        found, broken = load_pictures([good, str(tmp_path / "b.png")], Frame(8, 8), open_picture, file_key)
        assert list(found.places) == [good]
        assert list(broken) == [str(tmp_path / "b.png")]

    def test_who_watches_sees_it_come(self, tmp_path):
        paths = [str(saved(tmp_path / f"{i}.png", gradient(30 + i))) for i in range(room.AT_ONCE + 3)]
        seen = []
        for _ in range(2):  # from the cache there is nothing to see
            load_pictures(paths, Frame(8, 8), open_picture, file_key, lambda done, total: seen.append((done, total)))
        assert seen == [(0, 35), (32, 35), (35, 35)]

    def test_a_crash_leaves_nothing_half_made(self, tmp_path):
        def load(_source):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            load_pictures(["x"], Frame(8, 8), load, file_key)
        assert list((tmp_path / "cache").iterdir()) == []


class TestAlbums:
    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / "album" / "images").mkdir(parents=True)
        for name in ("one.jpg", "two.jpg", "three.png"):
            gradient().save(tmp_path / "album" / "images" / name)
        return tmp_path / "album"

    def pairs(self, path, part="train"):
        found = list(Album(path).stream(part))
        return (
            [(p.source.split("/")[-1], p.target) for p in found if isinstance(p, Pair)],
            [str(s) for s in found if isinstance(s, Skipped)],
        )

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("captions.tsv", "one.jpg\ta cat\none.jpg\ta small cat\nimages/two.jpg\ta dog\ngone.jpg\ta bird\n"),
            ("captions.csv", "image,caption\none.jpg,a cat\none.jpg,a small cat\ntwo.jpg,a dog\ngone.jpg,a bird\n"),
            ("captions.txt", "image,caption\none.jpg,a cat\none.jpg,a small cat\ntwo.jpg,a dog\ngone.jpg,a bird\n"),
            (
                "captions.jsonl",
                "".join(
                    json.dumps({"image": i, "caption": c}) + "\n"
                    for i, c in (
                        ("one.jpg", "a cat"),
                        ("one.jpg", "a small cat"),
                        ("two.jpg", "a dog"),
                        ("gone.jpg", "x"),
                    )
                ),
            ),
            ("Flickr8k.token.txt", "one.jpg#0\ta cat\none.jpg#1\ta small cat\ntwo.jpg#0\ta dog\ngone.jpg#0\ta bird\n"),
            (
                "coco.json",
                json.dumps(
                    {
                        "images": [{"id": i, "file_name": n} for i, n in enumerate(("one.jpg", "two.jpg", "gone.jpg"))],
                        "annotations": [
                            {"image_id": i, "caption": c}
                            for i, c in ((0, "a cat"), (0, "a small cat"), (1, "a dog"), (2, "a bird"))
                        ],
                    }
                ),
            ),
        ],
    )
    def test_what_people_have(self, folder, name, content):
        (folder / name).write_text(content)
        found, skipped = self.pairs(folder)
        assert found == [("one.jpg", "a cat"), ("one.jpg", "a small cat"), ("two.jpg", "a dog")]
        assert len(skipped) == 1
        assert "no such picture: gone.jpg" in skipped[0]

    def test_the_files_of_coco_are_its_parts(self, folder):
        (folder / "annotations").mkdir()
        for part, name in (("train", "one.jpg"), ("val", "two.jpg")):
            images = [{"id": 7, "file_name": name}]
            said = {"images": images, "annotations": [{"image_id": 7, "caption": f"in {part}"}]}
            boxes = {"images": images, "annotations": [{"image_id": 7, "bbox": [0, 0, 1, 1]}]}
            (folder / "annotations" / f"captions_{part}2017.json").write_text(json.dumps(said))
            (folder / "annotations" / f"instances_{part}2017.json").write_text(json.dumps(boxes))
        assert self.pairs(folder)[0] == [("one.jpg", "in train")]
        assert self.pairs(folder, "dev")[0] == [("two.jpg", "in val")]
        with pytest.raises(ValueError, match="has no part named test; there are: dev, train"):
            self.pairs(folder, "test")

    def test_karpathys_splits_and_flickrs_are_kept(self, folder):
        images = [("one.jpg", "train"), ("two.jpg", "val"), ("three.png", "restval")]
        karpathy = {"images": [{"filename": n, "split": s, "sentences": [{"raw": f"in {s}"}]} for n, s in images]}
        (folder / "dataset.json").write_text(json.dumps(karpathy))
        assert self.pairs(folder)[0] == [("one.jpg", "in train"), ("three.png", "in restval")]
        assert self.pairs(folder / "dataset.json", "dev")[0] == [("two.jpg", "in val")]
        (folder / "Flickr8k.token.txt").write_text("one.jpg#0\ta cat\ntwo.jpg#0\ta dog\nthree.jpg#0\ta bird\n")
        (folder / "Flickr_8k.trainImages.txt").write_text("one.jpg\n")
        (folder / "Flickr_8k.devImages.txt").write_text("three.jpg\n")
        assert self.pairs(folder)[0] == [("one.jpg", "a cat")]
        assert self.pairs(folder, "dev")[0] == [("three.png", "a bird")]  # saved in another format

    def test_captions_of_one_picture_stay_on_one_side(self, folder):
        for i in range(40):
            gradient(20 + i).save(folder / f"{i}.png")
        lines = [f"{i}.png\tcaption {k} of {i}" for i in range(40) for k in range(3)]
        (folder / "captions.tsv").write_text("\n".join(lines))
        material = gather(Source([str(folder)]), None)
        train, dev = ({p.source for p in part} for part in (material.sample, material.dev))
        assert train.isdisjoint(dev)
        assert len(train | dev) == 40

    def test_a_folder_that_was_moved_holds_the_same_pictures_back(self, folder):
        for i in range(40):
            gradient(20 + i).save(folder / f"{i}.png")
        (folder / "captions.tsv").write_text("".join(f"{i}.png\tcaption {i}\n" for i in range(40)))
        moved = shutil.copytree(folder, folder.parent / "elsewhere" / "moved")
        found = [gather(Source([str(there)]), None) for there in (folder, moved)]
        assert found[0].dev != found[1].dev  # by their paths
        assert [[p.target for p in m.dev] for m in found] == [[p.target for p in found[0].dev]] * 2

    def test_the_same_pictures_elsewhere_are_not_decoded_again(self, folder):
        (folder / "captions.tsv").write_text("one.jpg\ta cat\ntwo.jpg\ta dog\nthree.png\ta bird\n")
        copied = shutil.copytree(folder, folder.parent / "copied")
        sources = [
            [str(f) for f in (there / "images" / "one.jpg", there / "images" / "three.png")]
            for there in (folder, copied)
        ]
        first, second = (load_pictures(names, Frame(16, 16), open_picture, file_key)[0] for names in sources)
        assert len(list(room.cache_folder().iterdir())) == 1
        assert list(second.places) == sources[1]
        np.testing.assert_array_equal(first.pixels, second.pixels)

    def test_a_torn_cache_is_named(self, folder):
        load_pictures([str(folder / "images" / "one.jpg")], Frame(16, 16), open_picture, file_key)
        kept = next(room.cache_folder().iterdir())
        (kept / "pixels.npy").write_bytes((kept / "pixels.npy").read_bytes()[:-50])
        with pytest.raises(ValueError, match=f"{kept.name}: is damaged .*remove it"):
            load_pictures([str(folder / "images" / "one.jpg")], Frame(16, 16), open_picture, file_key)

    def test_who_is_strict_wants_every_picture(self, folder):
        (folder / "captions.tsv").write_text("one.jpg\ta cat\ntwo.jpg\ta dog\nbad.jpg\tx\n")
        (folder / "bad.jpg").write_text("no picture")
        material = gather(Source([str(folder)], strict=True), None)
        with pytest.raises(ValueError, match=r"bad.jpg: is no picture .*leave out --strict"):
            material.look(Frame(16, 16))

    def test_a_broken_picture_is_left_out_and_counted(self, folder):
        (folder / "captions.tsv").write_text("one.jpg\ta cat\ntwo.jpg\ta dog\nthree.png\ta bird\nbad.jpg\tx\n")
        (folder / "bad.jpg").write_text("no picture")
        material = gather(Source([str(folder)]), None)
        target = Tokeniser.train([p.target for p in material.sample], "words")
        examples = material.examples(Frame(16, 16), target)
        assert len(examples) + len(material.dev) == 3
        assert "skipped 1 picture: is no picture" in material.skipped.report()[0]
        assert "bad.jpg" in material.skipped.report()[0]
        caches = [p for p in room.cache_folder().iterdir() if p.name.startswith("pictures")]
        assert len(caches) == 2  # of train and of dev: nothing is decoded twice

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (None, "a folder without captions"),
            ("gone.jpg\tx\n", "no captions found; the first problem"),
            ("", "is empty"),
        ],
    )
    def test_a_folder_that_is_of_no_use(self, folder, content, says):
        if content is not None:
            (folder / "captions.tsv").write_text(content)
        with pytest.raises(ValueError, match=says):
            list(Album(folder).stream("train"))

    def test_a_json_file_of_something_else(self, folder):
        (folder / "x.json").write_text('{"images": [{"name": "one.jpg"}]}')
        with pytest.raises(ValueError, match="neither COCO captions nor Karpathy's splits"):
            list(Album(folder / "x.json").stream("train"))

    def test_two_pictures_of_one_name_are_not_guessed_between(self, folder):
        for name in ("a", "b"):
            (folder / name).mkdir()
            gradient().save(folder / name / "001.jpg")
        (folder / "captions.tsv").write_text("001.jpg\tx\na/001.jpg\tin a\nc/001.jpg\tnowhere\none.jpg\ta cat\n")
        found, skipped = self.pairs(folder)
        assert found == [("001.jpg", "in a"), ("one.jpg", "a cat")]
        assert [s.rsplit(":", 3)[-3:] for s in skipped] == [
            ["1", " no such picture", " 001.jpg"],
            ["3", " no such picture", " c/001.jpg"],
        ]

    def test_lines_are_counted_as_in_the_file_and_keep_their_reasons(self, folder):
        (folder / "captions.csv").write_text("image,caption\none.jpg,a cat\ntwo.jpg,\ngone.jpg,a bird\n")
        _, skipped = self.pairs(folder)
        assert [s.split("captions.csv:")[1] for s in skipped] == ["3: empty target", "4: no such picture: gone.jpg"]

    def test_a_json_file_with_holes(self, folder):
        notes = [{"image_id": 0, "caption": None}, {"image_id": 1, "caption": "x"}, {"image_id": 2, "caption": "a dog"}]
        images = [{"id": 0, "file_name": "one.jpg"}, {"id": 1, "file_name": 5}, {"id": 2, "file_name": "two.jpg"}]
        (folder / "x.json").write_text(json.dumps({"images": images, "annotations": notes}))
        found, skipped = self.pairs(folder)
        assert found == [("two.jpg", "a dog")]
        assert len(skipped) == 2

    @pytest.mark.parametrize("table", ["captions.txt", "captions.csv"])
    def test_lists_of_parts_go_with_any_table(self, folder, table):
        (folder / table).write_text(
            "image,caption\none.jpg,a cat\ntwo.jpg,a dog\nthree.jpg,a bird\ngone.jpg,in no list\n"
        )
        for part, name in (("train", "one.jpg"), ("dev", "two.jpg"), ("test", "three.jpg")):
            (folder / f"Flickr_8k.{part}Images.txt").write_bytes(name.encode() + b"\n\xff.jpg\n")
        found, skipped = self.pairs(folder)
        assert found == [("one.jpg", "a cat")]
        assert [s.split(table)[1] for s in skipped] == [":5: is in no part, but others are: gone.jpg"]
        assert len(list(Album(folder).stream("train", strict=True))) == 2  # it was left out on purpose
        assert self.pairs(folder, "test") == ([("three.png", "a bird")], [])  # what is in no part is said once

    def test_parts_by_other_names_and_those_that_nobody_knows(self, folder):
        rows = "one.jpg,a cat,Training\ntwo.jpg,a dog,validation\nthree.png,a bird,fold3\none.jpg,again,\n"
        (folder / "captions.csv").write_text(f"image,caption,split\n{rows}")
        found, skipped = self.pairs(folder)
        assert found == [("one.jpg", "a cat")]
        assert [s.split("captions.csv:")[1] for s in skipped] == [
            "4: unknown part 'fold3': three.png",
            "5: is in no part, but others are: one.jpg",
        ]
        assert self.pairs(folder, "dev") == ([("two.jpg", "a dog")], [])
        (folder / "captions.csv").write_text("image,caption,split\none.jpg,a cat,1\ntwo.jpg,a dog,2\n")
        with pytest.raises(ValueError, match=r"no captions found; the first problem: .*csv:2: unknown part '1'"):
            self.pairs(folder)

    def test_a_comma_that_nobody_quoted_does_not_cut_the_caption(self, folder):
        rows = 'one.jpg,a cat, asleep\ntwo.jpg,"a dog, awake"\nthree.png,a bird,\n'
        (folder / "captions.csv").write_text(f"image,caption\n{rows}")
        found, skipped = self.pairs(folder)
        assert found == [("two.jpg", "a dog, awake"), ("three.png", "a bird")]
        assert [s.split("captions.csv:")[1] for s in skipped] == ["2: expected 2 columns, found 3"]

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("labels.csv", "image,caption\none.jpg,a cat\ntwo.jpg,a dog\n"),
            ("results.token", "one.jpg#0\ta cat\ntwo.jpg#3\ta dog\n"),
            ("mine.jsonl", '{"image": "one.jpg", "caption": "a cat"}\n{"file_name": "two.jpg", "text": "a dog"}\n'),
        ],
    )
    def test_a_file_beside_the_pictures_may_have_any_name(self, folder, name, content):
        (folder / name).write_text(content)
        assert Source([str(folder / name)]).pictures
        assert self.pairs(folder / name) == ([("one.jpg", "a cat"), ("two.jpg", "a dog")], [])
        (folder / name).write_text(content.replace(".jpg", ""))
        assert not Album.is_one(folder / name)  # a name must look like one, or it is text

    def test_a_file_of_pictures_that_are_gone_is_not_taken_for_text(self, tmp_path):
        (tmp_path / "pairs.tsv").write_text("gone.jpg\ta cat\nlost.png\ta dog\n")
        with pytest.raises(ValueError, match=r"no captions found; .*pairs.tsv:1: no such picture: gone.jpg"):
            gather(Source([str(tmp_path / "pairs.tsv")]), None)
        (tmp_path / "pairs.tsv").write_text("IMG_1.HEIC\ta cat\nIMG_2.HEIC\ta dog\n")
        assert Album.is_one(tmp_path / "pairs.tsv")  # nor are those of a kind that is not read

    def test_a_list_of_captions_is_several(self, folder):
        lines = [{"image": "one.jpg", "captions": ["a cat", "a small cat", 7]}, {"image": "two.jpg"}]
        (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, lines)))
        found, skipped = self.pairs(folder)
        assert found == [("one.jpg", "a cat"), ("one.jpg", "a small cat")]
        assert [s.split("jsonl:")[1] for s in skipped] == [
            f"{i}: expected text under 'image' and 'caption'" for i in (1, 2)
        ]

    def test_flickr8k_as_it_is_unpacked(self, folder):
        (folder / "text").mkdir()
        (folder / "text" / "Flickr8k.token.txt").write_text("one.jpg#0\ta cat\ntwo.jpg#0\ta dog\n")
        (folder / "text" / "Flickr_8k.trainImages.txt").write_text("one.jpg\n")
        (folder / "text" / "Flickr_8k.devImages.txt").write_text("two.jpg\n")
        assert self.pairs(folder) == ([("one.jpg", "a cat")], [])
        assert self.pairs(folder, "dev") == ([("two.jpg", "a dog")], [])

    def test_names_from_another_system(self, folder):
        (folder / "captions.tsv").write_text("ONE.JPG\ta cat\nimages\\two.jpg\ta dog\n")
        assert self.pairs(folder) == ([("one.jpg", "a cat"), ("two.jpg", "a dog")], [])

    def test_a_skipped_record_names_its_own_file(self, folder):
        for part in ("train", "val"):
            told = {"images": [{"id": 0, "file_name": "one.jpg"}], "annotations": [{"image_id": 0, "caption": "a"}, {}]}
            (folder / f"captions_{part}.json").write_text(json.dumps(told))
        assert "captions_val.json:2: expected" in self.pairs(folder, "dev")[1][0]

    @pytest.mark.parametrize(
        "content",
        [
            "Filename,Caption\none.jpg,a cat\ntwo.jpg,a dog\n",
            '"image","comment","caption"\none.jpg,1,a cat\ntwo.jpg,2,a dog\n',
            "split,file_name,text\ntrain,one.jpg,a cat\ntrain,two.jpg,a dog\nval,three.png,a bird\n",
        ],
    )
    def test_columns_by_their_names(self, folder, content):
        (folder / "captions.csv").write_text(content)
        assert self.pairs(folder) == ([("one.jpg", "a cat"), ("two.jpg", "a dog")], [])
        if "split" in content:
            assert self.pairs(folder, "dev") == ([("three.png", "a bird")], [])

    def test_keys_of_other_people(self, folder):
        lines = [{"file_name": "one.jpg", "text": "a cat", "split": "train"}, {"file_name": "two.jpg", "text": "x"}]
        (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, lines)))
        found, skipped = self.pairs(folder)
        assert found == [("one.jpg", "a cat")]
        assert skipped[0].endswith(":2: is in no part, but others are: two.jpg")

    def test_names_that_no_file_can_have(self, folder):
        (folder / "captions.tsv").write_text(f"one.jpg\ta cat\nx\0y.png\ta\n{'n' * 5000}\tb\n")
        found, skipped = self.pairs(folder)
        assert found == [("one.jpg", "a cat")]
        assert len(skipped) == 2
        assert all(len(s) < 300 and "\0" not in s for s in skipped)

    def test_missing_pictures_are_counted_together(self, folder):
        (folder / "captions.tsv").write_text("one.jpg\ta cat\n" + "".join(f"gone{i}.jpg\tx\n" for i in range(300)))
        material = gather(Source([str(folder)]), Source([str(folder)]))
        assert [line.count("gone") for line in material.skipped.report()] == [3]
        assert material.skipped.report()[0].startswith("skipped 600 lines: no such picture")

    def test_json_with_records_of_all_kinds(self, folder):
        notes = [{"image_id": 0}, "x", {"image_id": 0, "caption": "a cat"}]
        told = {"images": [{"id": 0, "file_name": "one.jpg"}, 7], "annotations": notes}
        (folder / "x.json").write_text(json.dumps(told))
        assert self.pairs(folder)[0] == [("one.jpg", "a cat")]
        images = [{"filename": "one.jpg", "sentences": [{"raw": "a cat"}, {}]}, {"filename": "two.jpg"}]
        (folder / "x.json").write_text(json.dumps({"images": images}))
        found, skipped = self.pairs(folder)
        assert (found, len(skipped)) == ([("one.jpg", "a cat")], 2)
        (folder / "x.json").write_text('{"images": [' + "[" * 100_000)
        with pytest.raises(ValueError, match="neither COCO captions nor Karpathy's splits"):
            list(Album(folder / "x.json").stream("train"))

    def test_a_file_of_coco_in_its_own_place(self, folder):
        told = {"images": [{"id": 0, "file_name": "one.jpg"}], "annotations": [{"image_id": 0, "caption": "a cat"}]}
        (folder / "annotations").mkdir()
        (folder / "annotations" / "captions_train2017.json").write_text(json.dumps(told))
        assert self.pairs(folder / "annotations" / "captions_train2017.json")[0] == [("one.jpg", "a cat")]

    def test_links_lead_to_their_pictures(self, folder):
        (folder / "links").symlink_to(folder / "images", target_is_directory=True)
        (folder / "images" / "back").symlink_to(folder, target_is_directory=True)
        (folder / "link.jpg").symlink_to(folder / "images" / "one.jpg")
        (folder / "captions.tsv").write_text("link.jpg\ta cat\nlinks/two.jpg\ta dog\n")
        assert self.pairs(folder)[0] == [("link.jpg", "a cat"), ("two.jpg", "a dog")]

    def test_pairs_of_text_that_speak_of_images_are_text(self, tmp_path):
        path = tmp_path / "a.json"
        path.write_text('{"source": "images", "target": "\\"images\\" : none"}\n')
        assert not Album.is_one(path)

    def test_other_pictures_under_the_same_names_are_noticed(self, folder):
        (folder / "captions.tsv").write_text("one.jpg\ta cat\ntwo.jpg\ta dog\nthree.png\ta bird\n")
        before = gather(Source([str(folder)]), None).content
        assert gather(Source([str(folder)]), None).content == before
        gradient(33).save(folder / "images" / "two.jpg")
        assert gather(Source([str(folder)]), None).content != before

    def test_no_path_leads_out_of_the_folder(self, folder):
        gradient().save(folder.parent / "secret.png")
        (folder / "captions.tsv").write_text("../secret.png\tx\none.jpg\ta cat\n")
        assert self.pairs(folder)[0] == [("one.jpg", "a cat")]


class TestScenes:
    @given(st.sampled_from(["train", "dev", "test"]), st.integers(0, 10**6))
    def test_every_caption_is_true_and_drawn_again_the_picture_is_the_same(self, part, number):
        found = scene(f"scenes:{part}:{number}")
        for caption in found.captions(4):
            assert found.is_true(caption), caption
        assert found.draw().tobytes() == found.draw().tobytes()
        if part != "test":
            assert not found.unseen
            assert not any((t.colour, t.shape) in KEPT for t in found.things)

    def test_what_is_not_there_is_not_true(self):
        found = scene("scenes:train:3")
        thing, other = found.things[:2]
        name, other_name = (f"{t.size} {t.colour} {t.shape}" for t in (thing, other))
        left, right = sorted((name, other_name), key=lambda n: thing.centre if n == name else other.centre)
        assert found.is_true(f"a {left} is left of a {right}")
        assert not found.is_true(f"a {right} is left of a {left}")
        assert not found.is_true(f"a {left} is left of a {left}")
        wrong = next(c for c in ("red", "blue", "green", "yellow") if all(t.colour != c for t in found.things))
        assert not found.is_true(f"a {wrong} {thing.shape} is left of a {right}")
        assert not found.is_true("a cat is left of a dog")
        for broken in (f"there is the {left} is left of a {right}", f"the {left} left of the {right}"):
            assert not found.is_true(broken)
        assert not found.is_true(f"an {left} is left of a {right}")
        assert not found.is_true("")

    @given(st.integers(0, 10**6))
    def test_a_sentence_starts_from_what_stands_out_so_that_one_can_look_at_it(self, number):
        found = scene(f"scenes:train:{number}")
        sizes = ("large", "medium", "small")
        largest = min(found.things, key=lambda t: (sizes.index(t.size), t.centre))
        for caption in found.captions(6):
            things = [m.thing for m in found.mentions(caption)]
            if ":" in caption:
                assert things == sorted(found.things, key=lambda t: t.centre)
            else:
                assert things[0] == largest

    def test_mentions_are_where_the_words_are(self):
        found = scene("scenes:dev:11")
        for caption in found.captions(5):
            for mention in found.mentions(caption):
                assert mention.thing.is_called(caption[mention.start : mention.end])

    def test_colours_are_where_their_boxes_are(self):
        for i in range(20):
            found = scene(f"scenes:test:{i}")
            pixels = np.asarray(found.draw()).astype(int)
            for thing in found.things:
                y, x = (round(64 * c) for c in reversed(thing.centre))
                red, green, blue = pixels[y, x]
                if thing.colour == "red":
                    assert red > 2 * max(green, blue) - 60
                if thing.colour == "blue":
                    assert blue > max(red, green) + 40

    def test_plates_of_different_parts_never_share_a_text(self):
        texts = {part: {text_of(f"plates:{part}:{i}") for i in range(300)} for part in ("train", "dev", "test")}
        assert texts["train"].isdisjoint(texts["dev"] | texts["test"])
        assert load_source("plates:dev:5").height == 32

    def test_a_file_may_be_named_like_a_task(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        saved(tmp_path / "scenes:mine:1", gradient(), format="PNG")
        assert load_source("scenes:mine:1").size == (40, 30)

    def test_numbers_of_pictures_are_their_places(self):
        pairs = [Pair(f"scenes:train:{i // 2}", f"caption {i}") for i in range(6)]
        target = Tokeniser.train([p.target for p in pairs], "words")
        examples = numbered(pairs, Frame(64, 64), target)
        assert [examples[i][0] for i in range(6)] == [[0], [0], [1], [1], [2], [2]]
        assert (examples.pictures.pixels[1] == np.asarray(load_source("scenes:train:1"))).all()
