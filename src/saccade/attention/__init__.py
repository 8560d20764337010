"""The attention room: a query looks at keys and takes a weighted sum of values.

In come tensors, `query [.., M, Dq]`, `keys [.., N, Dk]`, `values [.., N, Dv]`; out goes a `Glance`: the context
`[.., M, Dv]` and, when asked, the weights. Every score function, mask, normaliser and position code of saccade is
here, and so are the Transformer block and the differentiable dictionary made of them. This room imports torch alone
and knows nothing of sentences, pictures or training.
"""

from saccade.attention.dropout import Dropout
from saccade.attention.functional import Glance, attend
from saccade.attention.layer import Attention, Prepared
from saccade.attention.positions import Learned, Rotary, Sinusoidal
from saccade.attention.softdict import SoftDict
from saccade.attention.transformer import Residual, TransformerBlock

__all__ = [
    "Attention",
    "Dropout",
    "Glance",
    "Learned",
    "Prepared",
    "Residual",
    "Rotary",
    "Sinusoidal",
    "SoftDict",
    "TransformerBlock",
    "attend",
]
