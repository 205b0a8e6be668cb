"""All real solutions of a sequence of polynomial systems.

The unknowns of each system are known variables of the systems after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from tauloop.common.records import dataclass
from tauloop.kinematics.homotopy.code import Follow
from tauloop.kinematics.homotopy.monodromy import (
    FOLLOWING,
    GenericSolutions,
    MonodromyOptions,
    Report,
    SearchCounts,
    SearchProgress,
    counts_of,
    generic_solutions,
    unreported,
)
from tauloop.kinematics.homotopy.target import TargetSolutions, target_solutions
from tauloop.kinematics.homotopy.widening import Widenable, Widened


class PolynomialBlock(Widenable, Protocol):
    """A polynomial system whose variables are columns of a common row of variables."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its equations."""

    @property
    def unknown_columns(self) -> tuple[int, ...]:
        """Columns of the variables that the system is solved for."""

    @property
    def known_columns(self) -> tuple[int, ...]:
        """Columns of the variables that earlier systems have determined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCount(SearchCounts):
    """Counts of the solution of one block.

    A case is a real solution of the previous blocks, for which the block is solved.

    Attributes:
        equations: names of the block's equations.
        complex_solutions: number of solutions of a random system of its family.
        cases: number of cases.
        real, complex: numbers of paths that ended at regular real and complex solutions, over all
            cases.
        merged: number of real solutions that are multiple or not isolated.
        singular: number of paths that ended at solutions that are multiple or not isolated.
        infinite: number of paths that went to infinity.
        unpaired: complex solutions whose conjugate is missing, over all cases: a path was lost.
        met: regular ends that more than one path reached, over all cases: a path jumped, or two
            solutions are too close to separate.
    """

    equations: tuple[str, ...]
    complex_solutions: int
    cases: int
    real: int
    complex: int
    merged: int
    singular: int
    infinite: int
    unpaired: int
    met: int


def solve_blocks(
    blocks: Sequence[PolynomialBlock],
    w: np.ndarray,
    rng: np.random.Generator,
    options: MonodromyOptions,
    report: Report = unreported,
    *,
    follow: Follow,
) -> tuple[np.ndarray, tuple[BlockCount, ...]]:
    """Return all real solutions of a sequence of blocks.

    Args:
        blocks: systems in the order of their solution.
        w: variables (n_w,); the values of unknowns of blocks are not used.
        rng: source of randomness.
        options: options of the search for complex solutions.
        report: called with the progress.
        follow: function that follows paths.

    Returns:
        Solutions (M, n_w), and the counts of the blocks. Blocks after a block without real
        solutions have no counts.
    """
    partial = w[None, :]
    counts = []
    for number, block in enumerate(blocks, start=1):
        if not len(partial):
            break

        def report_block(progress: SearchProgress, number: int = number) -> None:
            report(replace(progress, block=number, blocks=len(blocks)))

        known = partial[:, list(block.known_columns)]
        cases = known
        case_of = np.zeros(1, dtype=int)
        # np.unique imports numpy.ma, which takes as long as a small search, so a single case skips
        # it.
        if len(known) > 1:
            cases, case_of = np.unique(known, axis=0, return_inverse=True)
        can_widen = bool(block.terms) and len(block.angles) <= options.traced_angles
        family: Widened | PolynomialBlock = Widened(block, rng) if can_widen else block
        family_cases = list(cases)
        if isinstance(family, Widened):
            family_cases = [family.of_machine(case) for case in cases]
        generic = generic_solutions(
            family, family_cases[0].astype(complex), rng, options, report_block, follow=follow
        )
        targets = []
        for done, case in enumerate(family_cases, 1):
            targets.append(
                target_solutions(family, generic, case, rng, options.tracking, follow=follow)
            )
            report_block(
                SearchProgress(
                    phase=FOLLOWING,
                    done=done,
                    total=len(family_cases),
                    solutions=len(generic.x),
                )
            )
        partial = _extended(partial, block, targets, np.ravel(case_of))
        counts.append(_count(block, generic, targets))
    return partial, tuple(counts)


def _extended(
    partial: np.ndarray,
    block: PolynomialBlock,
    targets: Sequence[TargetSolutions],
    case_of: np.ndarray,
) -> np.ndarray:
    """Return every partial solution combined with every real solution of its case.

    Args:
        partial: solutions (M, n_w) of the previous blocks.
        block: the block that was solved.
        targets: solutions of the block for each case.
        case_of: index of the case (M,) of each partial solution.
    """
    rows = []
    for w, case in zip(partial, case_of, strict=True):
        target = targets[case]
        real = np.concatenate([target.regular[target.is_real].real, target.merged])
        extended = np.tile(w, (len(real), 1))
        extended[:, list(block.unknown_columns)] = real
        rows.append(extended)
    return np.concatenate(rows)


def _count(
    block: PolynomialBlock, generic: GenericSolutions, targets: Sequence[TargetSolutions]
) -> BlockCount:
    """Return the counts of a block from its solutions for a random system and for each case."""
    real = sum(int(target.is_real.sum()) for target in targets)
    return BlockCount(
        equations=block.names,
        complex_solutions=len(generic.x),
        cases=len(targets),
        real=real,
        complex=sum(len(target.regular) for target in targets) - real,
        merged=sum(len(target.merged) for target in targets),
        singular=sum(target.singular for target in targets),
        infinite=sum(target.infinite for target in targets),
        unpaired=sum(target.unpaired for target in targets),
        met=sum(target.met for target in targets),
        **counts_of(generic),
    )
