"""The papers' experiments done again: what was stated, what comes out here, and why they differ."""

from tauloop.reproduce.experiments import Experiment, experiment, experiments
from tauloop.reproduce.reproduction import Comparison, Reproduction, reproduce

__all__ = ["Comparison", "Experiment", "Reproduction", "experiment", "experiments", "reproduce"]
__dir__ = __all__.copy
