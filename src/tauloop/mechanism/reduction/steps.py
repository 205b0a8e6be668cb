"""What a reduction step says about itself, and what it needs to know about the machine's motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tauloop.errors import InputError, Problem
from tauloop.mechanism.model import BASE, Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a reduction.

    Attributes:
        name: what was done.
        removed, kept: elements that went, and those that stand for them.
        preserved: what is the same as before, exactly.
        approximated: what is not; empty for an exact step.
    """

    name: str
    removed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    preserved: tuple[str, ...] = ()
    approximated: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the step leaves every actuator force as it was."""
        return not self.approximated


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """How the bodies of a machine move in all its poses (found by `tauloop.kinematics.reduction.motion`).

    Attributes:
        groups: bodies that turn alike: their relative orientation is the same in every pose.
        orientation: orientation (3, 3) of every body in the base frame at the reference pose.
        position: origin (3,) of every body in the base frame at the reference pose, m.
    """

    groups: tuple[frozenset[str], ...]
    orientation: Mapping[str, np.ndarray]
    position: Mapping[str, np.ndarray]

    @property
    def translating(self) -> frozenset[str]:
        """Bodies that never turn, the base among them."""
        return self.group(BASE)

    def group(self, body: str) -> frozenset[str]:
        """The bodies that turn as this one does."""
        return next((group for group in self.groups if body in group), frozenset((body,)))


def require(mechanism: Mechanism, problems: list[Problem]) -> None:
    """Refuse a step that would change the machine.

    Raises:
        InputError: there are problems; all at once.
    """
    if problems:
        raise InputError(
            Problem(where=p.where, what=p.what, remedy=p.remedy, file=p.file or mechanism.file) for p in problems
        )
