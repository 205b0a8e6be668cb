"""Reproductions of experiments in papers with Tauloop, with stated and our values."""

from tauloop_papers.kept import Kept, keep, read_kept, reproduce_all
from tauloop_papers.page import write_page
from tauloop_papers.reproduction import (
    EXPERIMENTS,
    Comparison,
    Experiment,
    PrintedRow,
    PrintedTable,
    Reproduction,
    experiment,
    reproduce,
)

__all__ = [
    "EXPERIMENTS",
    "Comparison",
    "Experiment",
    "Kept",
    "PrintedRow",
    "PrintedTable",
    "Reproduction",
    "experiment",
    "keep",
    "read_kept",
    "reproduce",
    "reproduce_all",
    "write_page",
]
__dir__ = __all__.copy
