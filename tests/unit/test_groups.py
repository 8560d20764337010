"""Vectors for groups of neighbouring symbols: which groups there are, and what becomes of them in training."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from problems import assert_equal

from saccade.data import PAD
from saccade.model.groups import Groups

ROWS = 1 << 20  # so many that no two groups of these tests share one


def rows(tokens, mask=None, largest=4):
    tokens = torch.tensor(tokens)
    return Groups(largest, ROWS, 3, 0.0).rows(
        tokens, torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
    )


def by_hand(text, size):
    """Every place's group of so many symbols, PAD beyond both ends."""
    before = size // 2
    around = [*[PAD] * before, *text, *[PAD] * (size - 1 - before)]
    return [tuple(around[n : n + size]) for n in range(len(text))]


@given(st.lists(st.lists(st.integers(4, 9), min_size=5, max_size=5), min_size=1, max_size=4))
def test_two_places_share_a_row_if_the_same_symbols_stand_around_them(texts):
    for size, found in zip((2, 3, 4), rows(texts), strict=True):
        groups = [group for text in texts for group in by_hand(text, size)]
        same = {
            (a, b): r == s
            for a, r in zip(groups, found.flatten().tolist(), strict=True)
            for b, s in zip(groups, found.flatten().tolist(), strict=True)
        }
        assert all(equal == (a == b) for (a, b), equal in same.items())


def test_groups_of_different_sizes_have_different_rows():
    found = rows([[5, 5, 5, 5, 5, 5]])
    assert len({int(each[0, 3]) for each in found}) == 3


def test_whoever_stands_beside_a_text_changes_nothing():
    mask = torch.tensor([[True] * 3 + [False] * 3])
    alone = rows([[4, 5, 6]])
    for padding in (PAD, 7):
        beside = rows([[4, 5, 6, padding, padding, padding]], mask)
        for one, other in zip(alone, beside, strict=True):
            assert torch.equal(one, other[:, :3])


def test_what_it_says_is_the_sum_over_all_sizes():
    groups = Groups(4, 50, 3, 0.5).double().eval()
    tokens = torch.tensor([[4, 5, 6, 7]])
    mask = torch.ones_like(tokens, dtype=torch.bool)
    expected = sum(groups.table.weight[row[0]] for row in groups.rows(tokens, mask))
    assert_equal(groups(tokens, mask)[0], expected)


def test_training_leaves_whole_groups_out_and_keeps_the_mean():
    torch.manual_seed(0)
    groups = Groups(2, 50, 3, 0.4).train()
    tokens = torch.tensor([[4, 5]]).expand(20_000, 2)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    said = groups(tokens, mask)[:, 0]  # [20,000, 3]
    gone = (said == 0).all(-1)
    assert torch.equal(gone, (said == 0).any(-1))
    assert abs(gone.double().mean() - 0.4) < 0.02
    groups.eval()
    assert torch.allclose(said.mean(0), groups(tokens[:1], mask[:1])[0, 0], rtol=0.05)
