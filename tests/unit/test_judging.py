"""Judging attention: against gold, by itself, and by hiding what was looked at."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.config import ModelConfig
from saccade.data import START, Pair, Tokeniser, read_pairs
from saccade.evaluate import health, judge
from saccade.metrics import Gold, absentminded_in, agreement, ailments, coverage_deviation, entropy, read_gold
from saccade.model import build
from saccade.search import Translator, Voice, occlude
from saccade.see import Prediction, Token, page
from saccade.see.views import view

SHARED = Path(__file__).parents[3] / "shared" / "data" / "alignment"
links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)))


class TestAgreement:
    @given(st.lists(st.tuples(links, links), min_size=1, max_size=4))
    def test_to_find_what_people_drew_is_no_error(self, rows):
        gold = [Gold(sure, sure | more) for sure, more in rows]
        assert agreement([g.sure for g in gold], gold).aer == pytest.approx(0)
        found = agreement([g.possible for g in gold], gold)
        assert found.aer == pytest.approx(0)
        if any(g.sure for g in gold):
            assert found.recall == 100
            assert agreement([set() for _ in gold], gold).aer == 100

    def test_by_hand(self):
        gold = [Gold(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (2, 1)}))]
        found = agreement([{(0, 0), (2, 1), (3, 3)}], gold)  # 2 of 3 possible, 1 of 2 sure
        assert found == pytest.approx((100 * (1 - (1 + 2) / (3 + 2)), 200 / 3, 50))

    def test_a_file_counts_from_0_if_it_has_a_0(self, tmp_path):
        (tmp_path / "a").write_text("1-1 2p3\n\n2-2\n")
        gold, first = read_gold(tmp_path / "a")
        assert first == 1
        assert gold[0] == Gold(frozenset({(0, 0)}), frozenset({(0, 0), (1, 2)}))
        assert gold[1] == Gold(frozenset(), frozenset())
        (tmp_path / "b").write_text("1-1 2?3\n0-0\n")
        assert read_gold(tmp_path / "b")[0][0].possible == {(1, 1), (2, 3)}
        (tmp_path / "c").write_text("1-1\n1:2\n")
        with pytest.raises(ValueError, match="c:2: '1:2' is no link; expected i-j or ipj"):
            read_gold(tmp_path / "c")
        with pytest.raises(ValueError, match="cannot be read"):
            read_gold(tmp_path / "none")

    @pytest.mark.skipif(not SHARED.exists(), reason="the gold alignments of ../shared are not here")
    @pytest.mark.parametrize("name", ["enfr", "roen"])
    def test_real_gold_fits_its_sentences(self, name):
        gold, pairs = read_gold(SHARED / f"{name}.gold")[0], read_pairs(SHARED / f"{name}.src-tgt").pairs
        assert len(gold) == len(pairs) == {"enfr": 447, "roen": 248}[name]
        for known, (source, target) in zip(gold, pairs, strict=True):
            assert all(i < len(source.split()) and j < len(target.split()) for i, j in known.possible)
        diagonal = agreement([{(i, i) for i in range(min(len(s.split()), len(t.split())))} for s, t in pairs], gold)
        assert 30 < diagonal.aer < 90  # words in step are a poor guess, but better than none


class TestWeightsAlone:
    def test_entropy_and_coverage(self):
        sharp, flat = np.eye(3), np.full((3, 3), 1 / 3)
        assert entropy(sharp) == pytest.approx([0, 0, 0])
        assert entropy(flat) == pytest.approx([np.log(3)] * 3)
        assert coverage_deviation(sharp) == coverage_deviation(flat) == pytest.approx(0)
        assert coverage_deviation(np.array([[1.0, 0, 0]] * 3)) == pytest.approx((np.log(5) + 2 * np.log(2)) / 3)
        assert absentminded_in(sharp) == pytest.approx(0)
        assert absentminded_in(flat) == pytest.approx(np.log(3))

    def test_ailments(self):
        assert ailments(np.eye(5)) == []
        assert ailments(np.full((5, 4), 0.25)) == ["does not move from word to word"]
        assert ailments(np.array([[0.05, 0.9, 0.05]] * 5)) == ["looks at one place for every word"]
        assert ailments(np.eye(5) * 0.5) == ["does not add up to one for 5 of 5 words"]
        assert ailments(np.zeros((0, 4))) == []

    def test_the_health_of_many(self):
        def said(text: str, weights) -> Prediction:
            words = text.split()
            starts = [len(" ".join(words[:i])) + bool(i) for i in range(len(words))]
            tokens = [Token(w, (s, s + len(w))) for w, s in zip(words, starts, strict=True)]
            ended = (*tokens, Token("∎", (len(text), len(text))))
            return Prediction(text, text, -1.0, ended, ended, (-0.1,) * len(ended), np.asarray(weights)[None, None])

        sharp, flat = np.eye(4), np.full((4, 4), 0.25)
        found = health([said("a house 7", sharp), said("a small house", flat)])
        assert found is not None
        assert found.figures["entropy"] == pytest.approx(np.log(4) / 2)
        assert found.worst[0][1].text == "a small house"
        assert {kind for kind, _, _ in found.classes} >= {"the end", "numbers"}
        assert found.record()["ailments"] == [{"what": "does not move from word to word", "sources": 1}]
        assert health([Prediction("a", "b", 0.0)]) is None


@pytest.fixture(params=["bahdanau", "luong", "transformer"])
def translator(request):
    torch.manual_seed(0)
    tokeniser = Tokeniser.train(["a b c d e f g"], "symbols")
    config = ModelConfig(family=request.param, width=16, **({"heads": 4} if request.param == "transformer" else {}))
    return Translator([Voice(build(config, len(tokeniser), len(tokeniser)).double(), tokeniser)], tokeniser)


class TestGold:
    def test_every_way_is_told(self, translator):
        pairs = [Pair("a b c", "c b"), Pair("d e", "e"), Pair("f g a", "a b"), Pair("a", "b")]
        gold = [Gold(frozenset({(0, 0)}), frozenset({(0, 0)}))] * 4
        found = judge(translator, pairs, gold)
        assert [way.partition(" (")[0] for way, _ in found] == [
            "the most, shown layer", "at least a threshold, shown layer", "the most, best layer and head",
        ]  # fmt: skip
        assert all(0 <= x <= 100 for _, figures in found for x in figures)

    def test_gold_that_does_not_fit_is_said(self, translator):
        with pytest.raises(ValueError, match="1 pairs, but gold for 2; expected as many"):
            judge(translator, [Pair("a", "b")], [Gold(frozenset(), frozenset())] * 2)
        with pytest.raises(
            ValueError, match=r"gold of sentence 1: a link to words \(4, 0\), counted from 0, but there are \(1, 1\)"
        ):
            judge(translator, [Pair("a", "b")], [Gold(frozenset(), frozenset({(4, 0)}))])


class TestOcclusion:
    def test_only_the_look_of_that_word_is_changed(self, translator):
        plain = translator.score("a b c d e", "c b a")
        said = occlude(translator, "a b c d e", "c b a")
        words = said.occluded
        assert [t.text.strip() for t in said.target_tokens] == ["c", "b", "a", "∎"]
        assert said.log_probabilities == pytest.approx(plain.log_probabilities)
        assert all(1 <= w.places < 6 for w in words)
        assert any(abs(w.hidden - np.exp(p)) > 1e-6 for w, p in zip(words, plain.log_probabilities, strict=True))
        assert occlude(translator, "a b c d e", "c b a").occluded == words
        self.assert_by_hand(translator, plain, words)

    def test_it_stands_in_records_tables_and_pages(self, translator):
        said = occlude(translator, "a b c d e", "c b a")
        assert np.allclose(Prediction.read(said.record()).occluded, said.occluded, atol=1e-6)
        first = view(said, "pieces").occluded[0]
        assert first == (said.occluded[0].hidden, said.occluded[0].by_chance)
        shown = page([said])
        assert "p, its look hidden" in shown
        assert f">{first[0]:.2f}<" in shown

    @torch.inference_mode()
    def assert_by_hand(self, translator, plain, words):
        # hide what the second word looked at, and nothing else
        memory = translator.memories("a b c d e")[0]
        ids = [*translator.target.encode("c b a").ids]
        given = torch.tensor([[START, *ids]])
        order = torch.from_numpy(plain.weights[1]).argsort(descending=True)
        look = torch.ones(1, 4, 6, dtype=torch.bool)
        look[0, 1, order[: words[1].places]] = False
        model = translator.models[0]
        said = model.decoder.readout(model.decoder(memory, given, look=look).hidden).softmax(-1)
        assert words[1].hidden == pytest.approx(said[0, 1, ids[1]].item())

    def test_a_model_without_attention_says_so(self):
        tokeniser = Tokeniser.train(["a b"], "symbols")
        blind = Translator([Voice(build(ModelConfig(family="seq2seq", width=8), 6, 6), tokeniser)], tokeniser)
        with pytest.raises(ValueError, match="no attention to interfere with"):
            occlude(blind, "a", "b")


def test_a_given_target_keeps_words_that_the_model_cannot_write():
    """Gold links count the words that were given, whatever a tokeniser makes of them."""
    torch.manual_seed(0)
    symbols = Tokeniser.train(["ab cd"], "words")
    model = build(ModelConfig(family="luong", width=8), len(symbols), len(symbols))
    said = Translator([Voice(model, symbols)], symbols).score("ab cd", "ab ☃ cd")
    assert said.text == "ab ☃ cd"
    assert [t.text.strip() for t in said.target_tokens[:-1]] == ["ab", "☃", "cd"]
    assert {j for _, j in said.alignment} == {0, 1, 2}
    assert judge(
        Translator([Voice(model, symbols)], symbols),
        [Pair("ab cd", "ab ☃ cd")],
        [Gold(frozenset({(1, 2)}), frozenset())],
    )


def test_an_output_is_judged_by_the_pieces_in_which_it_was_written():
    """The same text may be cut otherwise: then each piece would have another probability."""
    torch.manual_seed(0)
    symbols = Tokeniser.train(["ab ab ba"], "characters")
    model = build(ModelConfig(family="luong", width=8), len(symbols), len(symbols))
    translator = Translator([Voice(model, symbols)], symbols)
    said = translator("ab", beam=1)
    judged = occlude(translator, said.source, said)
    assert judged.log_probabilities == said.log_probabilities
    assert len(said.numbers) == len(judged.occluded)
