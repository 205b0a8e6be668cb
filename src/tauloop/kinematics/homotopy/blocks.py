"""All real solutions of polynomial systems that are solved one after the other.

The unknowns of each system are known variables of the later ones.
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
    def x(self) -> tuple[int, ...]:
        """Columns of its own variables."""

    @property
    def y(self) -> tuple[int, ...]:
        """Columns of its known variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockCount(SearchCounts):
    """Counts of one block, in addition to those of the search in a random system.

    Attributes:
        equations: names of its equations.
        complex_solutions: solutions of a random system of its family.
        cases: number of real solutions of the previous blocks for which it was solved.
        real, complex: regular ends of paths, over all cases.
        merged: real solutions that are multiple or not isolated.
        singular, infinite: paths that end at solutions that are multiple or not isolated, or at
            infinity.
        unpaired, met: ends that show lost paths (`TargetSolutions`), over all cases.
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
        w: variables (n_w,), of which those that no block solves for are given.
        rng: source of randomness.
        options: how complex solutions are found.
        report: called with the progress.
        follow: follows paths.

    Returns:
        Solutions (M, n_w), and the counts of the blocks; a block after one without real solutions
        is not counted.
    """
    partial = w[None, :]
    counts = []
    for number, block in enumerate(blocks, start=1):
        if not len(partial):
            break

        def tell(progress: SearchProgress, number: int = number) -> None:
            report(replace(progress, block=number, blocks=len(blocks)))

        known = partial[:, list(block.y)]
        cases, case_of = known, np.zeros(1, dtype=int)
        # NumPy would import its masked arrays, which takes as long as a small search
        if len(known) > 1:
            cases, case_of = np.unique(known, axis=0, return_inverse=True)
        is_wide = block.terms and len(block.angles) <= options.traced_angles
        family: Widened | PolynomialBlock = Widened(block, rng) if is_wide else block
        own = (
            [family.of_machine(case) for case in cases]
            if isinstance(family, Widened)
            else list(cases)
        )
        generic = generic_solutions(
            family, own[0].astype(complex), rng, options, tell, follow=follow
        )
        targets = []
        for done, case in enumerate(own, 1):
            targets.append(
                target_solutions(family, generic, case, rng, options.tracking, follow=follow)
            )
            tell(
                SearchProgress(phase=FOLLOWING, done=done, total=len(own), solutions=len(generic.x))
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
    """Return every solution so far combined with every real solution of its case."""
    rows = []
    for w, case in zip(partial, case_of, strict=True):
        target = targets[case]
        real = np.concatenate([target.regular[target.is_real].real, target.merged])
        extended = np.tile(w, (len(real), 1))
        extended[:, list(block.x)] = real
        rows.append(extended)
    return np.concatenate(rows)


def _count(
    block: PolynomialBlock, generic: GenericSolutions, targets: Sequence[TargetSolutions]
) -> BlockCount:
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
