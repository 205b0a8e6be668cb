"""The papers' experiments done again with Tauloop: what was stated, what comes out here, and why they differ."""

from tauloop_papers.reproduction import EXPERIMENTS, Comparison, Experiment, Reproduction, experiment, reproduce

__all__ = ["EXPERIMENTS", "Comparison", "Experiment", "Reproduction", "experiment", "reproduce"]
__dir__ = __all__.copy
