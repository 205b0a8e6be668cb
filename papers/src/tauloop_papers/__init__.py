"""The papers' experiments done again with Tauloop: what was stated, what comes out here, and why they differ."""

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
