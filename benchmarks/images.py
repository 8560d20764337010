"""How fast pictures are learned from and described, and what reading them costs beside that.

    python benchmarks/images.py      about two minutes, on two threads

On the built-in scenes with the default model: pictures a second in training and in captioning, the share of a training
step that goes to the cache and the augmentation, and how memory grows over epochs. Compare the ratios.
"""

import resource
import statistics
import tempfile
import time
from pathlib import Path

import torch

from saccade.config import RunConfig
from saccade.config.image import ImageConfig
from saccade.config.presets import Amount, automatic
from saccade.data import TASKS, Batch, Frame, Tokeniser, batches, numbered
from saccade.model.images import Change
from saccade.search import Options
from saccade.train.loop import _optimiser, _update
from saccade.train.run import Run

PICTURES, STEPS, EPOCHS = 1000, 20, 4


def main() -> None:
    torch.set_num_threads(2)
    torch.manual_seed(0)
    pairs = TASKS["scenes"].pairs("train", size=PICTURES)
    target = Tokeniser.train([p.target for p in pairs], "words")
    image = ImageConfig(shift=0.06, colour=0.1)
    model = automatic(Amount(PICTURES, 0, spelt=False, pictures=True), {}).settings["model"]
    config = RunConfig.read({"model": model, "image": image.model_dump()}, "benchmark")
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(Path(folder) / "run", config, Frame(image.height, image.width), target)
        examples = numbered(pairs, run.source, target)
        model = run.build()
        optimiser = _optimiser(model, config.train)
        change = Change(image)
        chosen = batches(examples, 1000, 0, 0)
        data, steps, seen = [], [], 0
        for rows in chosen[: STEPS + 3]:
            start = time.perf_counter()
            batch = Batch.of([examples[i] for i in rows], examples.pictures)
            change(batch.source.float(), batch.mask)
            middle = time.perf_counter()
            _update(model, optimiser, batch, config.train, 1.0)
            data.append(middle - start)
            steps.append(time.perf_counter() - middle)
            seen += len(rows)
        data, steps = data[3:], steps[3:]  # the first ones warm up
        each = seen / (STEPS + 3)
        print(f"training: {each / statistics.median(steps):.0f} pictures a second, {each:.0f} in a step")
        share = statistics.median(data) / statistics.median(steps)
        print(f"cache and augmentation: {share:.1%} of a step (target: under 10%)")

        translator = run.translator([model.eval()])
        translator.pictures = examples.pictures
        sources = list(examples.pictures.places)[:200]
        for beam in (1, 5):
            start = time.perf_counter()
            translator.translate(sources, Options(beam=beam), look=False)
            speed = len(sources) / (time.perf_counter() - start)
            print(f"captioning, beam {beam}: {speed:.0f} pictures a second, untrained")

        grown = []
        for epoch in range(EPOCHS):
            for rows in batches(examples, 1000, 0, epoch)[:STEPS]:
                _update(model, optimiser, Batch.of([examples[i] for i in rows], examples.pictures), config.train, 1.0)
            grown.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        print("peak memory after each epoch, MB:", ", ".join(f"{x:.0f}" for x in grown))


if __name__ == "__main__":
    main()
