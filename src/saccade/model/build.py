"""From a config to a model, on one page."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.config.image import ImageConfig
from saccade.data import START, UNKNOWN
from saccade.errors import too_large
from saccade.model.decoder import Decoder
from saccade.model.images import ImageEncoder
from saccade.model.loss import summed_loss
from saccade.model.memory import Memory, turned
from saccade.model.recurrent_decoders import BahdanauDecoder, LuongDecoder, Seq2SeqDecoder
from saccade.model.recurrent_encoder import RecurrentEncoder
from saccade.model.transformer import TransformerDecoder, TransformerEncoder
from saccade.model.walking import WalkingDecoder

DIAGONAL_WIDTH = 0.15  # of a source's length


class Model(nn.Module):
    """An encoder that reads, a decoder that writes and, if it writes both ways, one that writes from the end.

    The second is an ordinary decoder before a mirror: what it is shown and what it writes are turned round.
    """

    def __init__(self, encoder: nn.Module, decoder: Decoder, mirrored: Decoder | None = None) -> None:
        super().__init__()
        self.encoder, self.decoder, self.mirrored = encoder, decoder, mirrored

    def encode(self, tokens: Tensor, mask: Tensor, need_weights: bool = False) -> Memory:
        """Reads a batch of sources, tokens [B, N] or pixels [B, 3, H, W], and prepares what the decoder will look at.

        `mask` says how far each goes: [B, N] or, of pictures, their height and width [B, 2]. With `need_weights`, an
        encoder that looks at itself tells where.
        """
        return self.decoder.prepare(self.encoder(tokens, mask, need_weights))

    def turned(self, memory: Memory) -> tuple["Model", Memory]:
        """Who writes from the end, as a model of its own, and what it looks at."""
        assert self.mirrored is not None
        return Model(self.encoder, self.mirrored), self.mirrored.prepare(memory.mirrored())

    def forward(
        self,
        tokens: Tensor,
        mask: Tensor,
        given: Tensor,
        wanted: Tensor,
        real: Tensor,
        smoothing: float = 0.0,
        sampling: float = 0.0,
        consistency: float = 0.0,
        doubly_stochastic: float = 0.0,
        diagonal: float = 0.0,
        word_dropout: float = 0.0,
    ) -> Tensor:
        """The summed loss of writing `wanted` [B, T] after each word of `given` [B, T], over the `real` [B, T] ones.

        Where several targets belong to one source, they are [B, K, T]; the source is read once. Of two decoders it is
        the mean.

        With `sampling`, that share of the given words is replaced by the model's own choice (Bengio et al. 2015); the
        choices come from one reading of the true words (Mihaylova & Martins 2019), so that every family can do it.

        With `word_dropout`, that share of the given words is hidden: what comes next must be seen in the source.

        With `consistency`, each pair is read twice, and the two readings, from which dropout left out other things, are
        also asked to agree (Liang et al. 2021, R-Drop; this is their α). The loss is then the mean of the two.

        With `doubly_stochastic`, λ Σ_n (1 − Σ_t a_tn)² is added for each source, the mean over layers and heads; with
        `diagonal`, so much for each word that looks far from where it would stand if source and target kept step.
        """
        if consistency:
            tokens, mask, given, wanted, real = (torch.cat([x, x]) for x in (tokens, mask, given, wanted, real))
        told = (smoothing, sampling, consistency, doubly_stochastic, diagonal, word_dropout)
        memory = self.encoder(tokens, mask, False)
        loss = _loss(self.decoder, memory, given, wanted, real, *told)
        if self.mirrored is not None:
            behind = _loss(self.mirrored, memory.mirrored(), *mirrored(given, wanted, real), real, *told)
            loss = (loss + behind) / 2
        return loss / 2 if consistency else loss


def _loss(
    decoder: Decoder,
    memory: Memory,
    given: Tensor,
    wanted: Tensor,
    real: Tensor,
    smoothing: float,
    sampling: float,
    consistency: float,
    doubly_stochastic: float,
    diagonal: float,
    word_dropout: float,
) -> Tensor:
    """The summed loss of one decoder."""
    memory = decoder.prepare(memory)
    if sampling:
        with torch.no_grad():
            chosen = decoder.readout(decoder(memory, given).hidden).argmax(-1)  # [.., T]
        own = torch.rand(given.shape, device=given.device)[..., 1:] < sampling
        given = torch.cat([given[..., :1], torch.where(own, chosen[..., :-1], given[..., 1:])], -1)
    if word_dropout:
        hidden_words = torch.rand(given.shape, device=given.device) < word_dropout
        given = torch.where(hidden_words & (given != START), UNKNOWN, given)
    loss = memory.summary.new_zeros(())
    for slots, longest in _stretches(real):
        told, asked, meant = (x[..., slots, :longest] for x in (given, wanted, real))
        found = decoder(memory, told, need_weights=doubly_stochastic + diagonal > 0)
        hidden, weights = found.hidden, found.weights  # [.., T, D], [.., T, L, H, N]
        logits = decoder.readout(hidden[meant])  # [R, V]: the output layer sees no padding
        loss = loss + summed_loss(logits, asked[meant], smoothing)
        if weights is not None and doubly_stochastic:
            looked = (weights * meant[..., None, None, None]).sum(-4)  # [.., L, H, N]
            missed = ((1 - looked) ** 2).mean((-3, -2)) * meant.any(-1, keepdim=True)  # [.., N]
            loss = loss + doubly_stochastic * missed.movedim(0, -2)[..., memory.mask].sum()
        if weights is not None and diagonal:
            strayed = (weights.mean((-3, -2)) * _off_diagonal(memory, meant)).sum(-1)  # [.., T]
            loss = loss + diagonal * strayed[meant].sum()
        if consistency:
            one, other = F.log_softmax(logits, -1).chunk(2)  # [R/2, V] each
            loss = loss + consistency / 2 * ((one.exp() - other.exp()) * (one - other)).sum()  # KL both ways
    return loss


def mirrored(given: Tensor, wanted: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
    """Targets as they are written from the end: given and wanted, [.., T] each."""
    words = F.pad(real[..., 1:], (0, 1))  # all that is real but STOP, which stays behind them
    backwards = wanted.gather(-1, turned(words))
    return torch.cat([given[..., :1], backwards[..., :-1]], -1), backwards


def _stretches(real: Tensor) -> list[tuple[slice, int]]:
    """Which targets are read together, and how far: all of [B, T], but of [B, K, T] the longer ones of every source
    apart from the shorter, if that saves a tenth. It saves most where they come from the longest to the shortest.
    """
    if real.dim() == 2:
        return [(slice(None), real.shape[1])]
    longest = real.sum(-1).amax(0).flip(0).cummax(0).values.flip(0).tolist()  # [K]: of each and those after it
    count = len(longest)
    costs = [k * longest[0] + (count - k) * longest[k] for k in range(count)]
    best = min(range(count), key=costs.__getitem__)
    if costs[best] > 0.9 * costs[0]:
        return [(slice(None), longest[0])]
    return [(slice(0, best), longest[0]), (slice(best, count), longest[best])]


def _off_diagonal(memory: Memory, real: Tensor) -> Tensor:
    """1 − e^{−(n/N − t/T)² / 2w²} for N and T real places: 0 on the diagonal of each pair, 1 far from it: [.., T, N].

    (Guided attention, Tachibana et al. 2018.) Of a picture, n/N is how far from the left a cell is.
    """
    places, times = (
        (torch.arange(x.shape[-1], device=x.device) + 0.5) / x.sum(-1, keepdim=True).clamp(min=1)
        for x in (memory.mask, real)
    )
    if memory.along is not None:
        places = memory.along
    places = places.view(len(places), *[1] * (real.dim() - 1), -1)  # [B, 1, N] or [B, 1, 1, N]
    return 1 - torch.exp(-((places - times.unsqueeze(-1)) ** 2) / (2 * DIAGONAL_WIDTH**2))


def build(config: ModelConfig, source: int | ImageConfig, target_vocabulary: int, shared: bool = False) -> Model:
    """The model that a config describes, for so many symbols of the source, or for pictures.

    If both sides share their symbols, they also share the vectors of these.
    """
    try:
        return _build(config, source, target_vocabulary, shared)
    except (MemoryError, RuntimeError, TypeError) as error:
        if not too_large(error):
            raise
        raise ValueError(
            f"model: too large for this machine's memory (width={config.width}, layers={config.layers}); "
            "make model.width or another of its sizes smaller"
        ) from None


def _build(config: ModelConfig, source: int | ImageConfig, target_vocabulary: int, shared: bool) -> Model:
    encoder: nn.Module
    if isinstance(source, ImageConfig):
        encoder = ImageEncoder(config, source)
    elif config.family == "transformer":
        encoder = TransformerEncoder(config, source)
    else:
        encoder = RecurrentEncoder(config, source)
    decoder: Callable[[ModelConfig, int], Decoder]
    match config.family:
        case "seq2seq":
            decoder = Seq2SeqDecoder
        case "bahdanau":
            decoder = BahdanauDecoder
        case "luong":
            decoder = WalkingDecoder if config.walk else LuongDecoder
        case "transformer":
            decoder = TransformerDecoder
    model = Model(encoder, *(decoder(config, target_vocabulary) for _ in range(1 + config.both_ways)))
    if shared:
        model.encoder.embed.weight = model.decoder.embed.weight  # type: ignore[union-attr]
    return model
