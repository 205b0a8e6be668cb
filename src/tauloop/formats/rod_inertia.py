"""Inertia of a link along the line between its joints, and the leaf parameters of a rod with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from pathlib import Path

import numpy as np

from tauloop.formats.rod_ends import SAME_POINT
from tauloop.mechanism.expression import Leaf, add, multiply
from tauloop.mechanism.inertias import about_origin
from tauloop.mechanism.model import Inertia, Mechanism, Parameter, SlenderPart
from tauloop.records import dataclass

#: Moments of inertia are alike, and products vanish, within this share of the largest.
_SAME_MOMENT = 1e-6
#: An axial inertia below this share of the one across is none: writers put a least value where a zero is refused.
_NO_AXIAL = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutLine:
    """A link seen along the line between its joints.

    Attributes:
        center: distance of the mass centre from A, m.
        across, axial: moments of inertia about the mass centre, kg m^2.
        is_symmetric: whether the mass centre lies on the line and the inertia does not change by turning about it.
    """

    center: float
    across: float
    axial: float
    is_symmetric: bool

    @property
    def is_thin(self) -> bool:
        """Whether it has no inertia about the line."""
        return self.is_symmetric and self.axial <= _NO_AXIAL * self.across


def about_line(mass: float, r: np.ndarray, about: np.ndarray, z: np.ndarray, length: float) -> AboutLine:
    """Inertia `about` the mass centre r (from A) along the unit vector z."""
    P = np.eye(3) - np.outer(z, z)
    flat, axial = P @ about @ P, float(z @ about @ z)
    across = 0.5 * float(np.trace(flat))
    allowed = _SAME_MOMENT * max(across, axial, mass * length**2)
    is_round = np.abs(flat - across * P).max() <= allowed and np.abs(P @ about @ z).max() <= allowed
    is_centred = mass * float(np.linalg.norm(P @ r)) <= SAME_POINT * mass * length
    return AboutLine(center=float(r @ z), across=across, axial=axial, is_symmetric=bool(is_round and is_centred))


@dataclass(slots=True)
class RodParameters:
    """Leaf parameters of a rod or of one part of it, worked out from the bodies of its link."""

    name: str
    source: str
    part: str = "rod"
    parameters: list[Parameter] = field(default_factory=list)

    def leaf(self, name: str, value: float, unit: str, group: str) -> Leaf:
        """A new leaf parameter with the value that the file gives."""
        full = f"{self.name}.{self.part}.{name}"
        self.parameters.append(
            Parameter(name=full, value=value, unit=unit, group=group, status="inferred", source=self.source)
        )
        return Leaf(full)

    def slender(self, mass: float, center: float, across: float) -> SlenderPart:
        """Inertia about A of a link with its mass centre on its line and a moment across it about that centre."""
        m, s = self.leaf("mass", mass, "kg", "inertia"), self.leaf("center", center, "m", "inertia")
        I = self.leaf("inertia", across, "kg m^2", "inertia")
        h = multiply(m, s)
        return SlenderPart(mass=m, first_moment=h, second_moment=add(I, multiply(h, s)))

    def full(self, mass: float, center: np.ndarray, about: np.ndarray) -> Inertia:
        """Inertia about A in the rod frame."""
        m = self.leaf("mass", mass, "kg", "inertia")
        x, y, z = (self.leaf(f"center[{k}]", float(center[k]), "m", "inertia") for k in range(3))
        moments = [
            self.leaf(f"inertia.{'xyz'[i]}{'xyz'[j]}", float(about[i, j]), "kg m^2", "inertia")
            for i, j in ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
        ]
        xx, xy, yy, xz, yz, zz = moments
        return about_origin(m, (x, y, z), (xx, xy, yy, xz, yz, zz))


def source_of(mechanism: Mechanism, link: Sequence[str]) -> str:
    """Where the figures of a link come from."""
    return f"{Path(mechanism.file).name}: {', '.join(link)}"
