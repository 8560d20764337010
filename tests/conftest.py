"""What all tests share: one seed, one thread a worker, and hypothesis without a clock."""

import os

import hypothesis
import pytest
import torch

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the commands that tests run

torch.set_num_threads(1)  # tests run side by side

hypothesis.settings.register_profile("saccade", deadline=None, max_examples=60, print_blob=True)
hypothesis.settings.load_profile("saccade")


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
    torch.set_num_threads(1)
