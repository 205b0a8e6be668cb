"""Options of the planning of excitations."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path

from tauloop.common.options import Options, each, listed, option
from tauloop.common.records import dataclass
from tauloop.identification.excitation.criteria import (
    EXCITATION_CRITERIA,
    ConditionNumber,
    ExcitationCriterion,
)
from tauloop.identification.excitation.problem import ExcitationTask
from tauloop.identification.excitation.solver import SolverOptions
from tauloop.motion.sampled import SampledMotion


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationOptions(Options):
    """The task of an excitation and the extent of the search.

    Attributes:
        task: series, space and limits.
        criterion: criterion to minimize.
        previous_motions: motion of an earlier data set, as written by --out; the criterion applies to both
            data sets together.
        direct_drives: put direct drives on these coordinates instead of the actuators.
        random: number of random series that are tried first; the best of them are the starts.
        starts: number of searches; 0 keeps the best random series.
        polish: number of the best results that are optimized further on a finer grid.
        workers: number of parallel workers; the result does not depend on it.
        solver: options of the optimizer.
        seed: seed of the random series.
        stated_condition: condition number from another source, shown for comparison.

    Examples:
        >>> import tauloop as tl
        >>> tl.ExcitationOptions(random=50, starts=0, seed=1).random
        50
    """

    task: ExcitationTask = field(default_factory=ExcitationTask)
    criterion: ExcitationCriterion = option(ConditionNumber(), named=EXCITATION_CRITERIA)
    previous_motions: tuple[Path | SampledMotion, ...] = option(
        (), read=each(Path), repeated=True, metavar="FILE"
    )
    direct_drives: tuple[str, ...] = option((), read=listed, repeated=True, metavar="NAMES")
    random: int = option(1000, least=1)
    starts: int = option(4, least=0)
    polish: int = option(2, least=0)
    workers: int = option(1, least=1, flag="--workers -j", metavar="N")
    solver: SolverOptions = field(default_factory=SolverOptions)
    seed: int = option(0, least=0)
    stated_condition: float | None = option(None, flag="--stated-condition")
