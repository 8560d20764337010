"""How fast pictures are learned from and described, and what reading them costs beside that.

    python benchmarks/images.py      about two minutes, on two threads

On the built-in scenes with the default model, and with all that training can change about a picture: pictures a second
in training (each with its five captions) and in captioning, the share of a training step that goes to the cache and the
augmentation, and how memory grows over whole epochs. Compare the ratios.
"""

import resource
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from saccade.config import RunConfig
from saccade.config.image import ImageConfig
from saccade.config.presets import Amount, automatic
from saccade.data import TASKS, Batch, Frame, Tokeniser, batches, numbered
from saccade.model.images import Change
from saccade.search import Options
from saccade.train.pictures import near
from saccade.train.run import Run
from saccade.train.step import optimiser_of, update

PICTURES, STEPS, EPOCHS = 500, 20, 4
CHANGED = {"shift": 0.06, "crop": 0.1, "colour": 0.1, "flip": True}


def main() -> None:
    torch.set_num_threads(2)
    torch.manual_seed(0)
    pairs = TASKS["scenes"].pairs("train", size=PICTURES)
    target = Tokeniser.train([p.target for p in pairs], "words")
    picked = automatic(Amount(PICTURES, spelt=False, pictures=True), {}).settings
    image = ImageConfig.read({**near({}, picked["model"]["family"]), **CHANGED})
    config = RunConfig.read({**picked, "image": image.model_dump()}, "benchmark")
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", config, Frame(image.height, image.width), target)
        examples = numbered(pairs, run.source, target)
        model = run.build()
        optimiser = optimiser_of(model, config.train)
        change = Change(image)

        def chosen(epoch: int) -> list[NDArray[np.int64]]:
            return batches(examples, config.train.batch_tokens, 0, epoch)

        data, steps, seen = [], [], []
        for rows in chosen(0)[: STEPS + 3]:
            start = time.perf_counter()
            batch = Batch.of([examples[i] for i in rows], examples.pictures)
            read = time.perf_counter()
            update(model, optimiser, batch, config.train, 1.0)  # changes the pictures too
            done = time.perf_counter()
            change(batch.source.float(), batch.mask)  # so once more, by itself
            changed = time.perf_counter() - done
            data.append(read - start + changed)
            steps.append(done - start)
            seen.append(len(batch.source))
        data, steps, seen = data[3:], steps[3:], seen[3:]  # the first ones warm up
        print(f"training: {sum(seen) / sum(steps):.0f} pictures a second, {sum(seen) / STEPS:.0f} in a step")
        share = statistics.median(data) / statistics.median(steps)
        print(f"cache and augmentation: {share:.1%} of a step (target: under 10%)")

        translator = run.translator(model.eval())
        translator.pictures = examples.pictures
        sources = list(examples.pictures.places)[:200]
        for beam in (1, 5):
            start = time.perf_counter()
            translator.translate(sources, Options(beam=beam), look=False)
            speed = len(sources) / (time.perf_counter() - start)
            print(f"captioning, beam {beam}: {speed:.0f} pictures a second, untrained")

        grown = []
        for epoch in range(EPOCHS):
            for rows in chosen(epoch):
                update(model, optimiser, Batch.of([examples[i] for i in rows], examples.pictures), config.train, 1.0)
            grown.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print("peak memory after each epoch, MB:", ", ".join(f"{x:.0f}" for x in grown))


if __name__ == "__main__":
    main()
