"""The config room: typed and strict. An unknown key is an error that names the nearest known one.

Every setting is a field with a description; the description is the manual. This room imports nothing of saccade but
its errors, and no torch: reading a config must be cheap.
"""

from saccade.config.base import Config
from saccade.config.model import Cell, Family, ModelConfig
from saccade.config.train import DataConfig, RunConfig, TokeniserConfig, TrainConfig

__all__ = ["Cell", "Config", "DataConfig", "Family", "ModelConfig", "RunConfig", "TokeniserConfig", "TrainConfig"]
