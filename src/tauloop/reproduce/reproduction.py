"""What every reproduction gives: rows of stated and own figures, and the choices that the paper leaves open."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from tauloop.reproduce.experiments import Experiment, experiment
from tauloop.result import Result

#: Called with what is being done.
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One row of "stated, ours, why they differ".

    Attributes:
        quantity: what is compared.
        unit: its unit, "" for a pure number.
        stated: the figure as stated, with by whom; "" where nobody states one.
        ours: the figure found here.
        why: why they differ, or what the figure means.
    """

    quantity: str
    unit: str = ""
    stated: str = ""
    ours: str
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Result):
    """A paper's experiment done again; procedures add their own data for figures.

    Attributes:
        experiment: what was done.
        comparisons: stated beside ours.
        choices: what the paper leaves open and we chose, one sentence each.
    """

    experiment: Experiment
    comparisons: tuple[Comparison, ...]
    choices: tuple[str, ...]


def _silent(_: str) -> None:
    """Tell nobody."""


def reproduce(name: str, progress: Progress = _silent) -> Reproduction:
    """Do an experiment again.

    Args:
        name: see `experiments`.
        progress: called with every step that begins.

    Raises:
        InputError: there is no such experiment.
    """
    found = experiment(name)
    procedure = importlib.import_module(f"tauloop.reproduce.{found.procedure}")
    result: Reproduction = procedure.run(found, progress)
    return result
