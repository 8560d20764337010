"""Plates: a line of text, drawn with some noise, as wide as its text is long → the text. Reading in small.

Everything about a plate follows from its name, `plates:PART:NUMBER`.
"""

import random

from PIL import Image, ImageDraw, ImageFilter, ImageFont

HEIGHT = 32  # pixels
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
LENGTHS = (3, 10)


def text_of(name: str) -> str:
    """What is written on the plate of that name: letters, digits, and sometimes a blank or a dash between them."""
    part = name.split(":")[1]
    chance = random.Random(name)
    while True:
        letters = chance.choices(LETTERS, k=chance.randint(*LENGTHS))
        if len(letters) > 4 and chance.random() < 0.5:
            letters.insert(chance.randint(2, len(letters) - 2), chance.choice(" -"))
        text = "".join(letters)
        if {0: "dev", 1: "test"}.get(random.Random(text).randrange(10), "train") == part:  # no part knows another's
            return text


def draw(name: str) -> Image.Image:
    """Dark on light or light on dark, a little turned, blurred and speckled."""
    text, chance = text_of(name), random.Random(f"drawing {name}")
    font = ImageFont.load_default(chance.randint(18, 24))
    left, top, right, bottom = font.getbbox(text)
    margin = chance.randint(4, 10)
    width = round(right - left) + 2 * margin
    pale, dark = ([chance.randint(low, low + 80) for _ in range(3)] for low in (170, 0))
    if chance.random() < 0.3:
        pale, dark = dark, pale
    plate = Image.new("RGB", (width, HEIGHT), tuple(pale))
    height = (HEIGHT - (bottom - top)) / 2 - top + chance.randint(-2, 2)
    ImageDraw.Draw(plate).text((margin - left, height), text, font=font, fill=tuple(dark))
    plate = plate.rotate(chance.uniform(-2.5, 2.5), Image.Resampling.BILINEAR, fillcolor=tuple(pale))
    plate = plate.filter(ImageFilter.GaussianBlur(chance.uniform(0, 0.9)))
    noise = Image.frombytes("RGB", plate.size, chance.randbytes(3 * plate.width * plate.height))
    return Image.blend(plate, noise, chance.uniform(0, 0.18))
