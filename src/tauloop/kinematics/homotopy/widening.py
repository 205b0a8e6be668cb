"""Families of polynomial systems widened by linear terms, so that their solutions stay finite.

Machines with joints on circles or parallel legs are special members of their family: some solutions
of the general machine are at infinity for these machines and become finite at special constants. A
search among such systems therefore does not find all solutions, and cannot detect that some are
missing. The widened system is F(x, y) + (s_1 C_1 + s_2 C_2) x + e, with random complex matrices C_1
and C_2, which are zero outside the loop equations. It is a general member for almost all s, and the
machine's system for s = 0.

Blocks of lengths and quaternions get linear terms in the lengths; blocks of angles get linear terms
in cosines and sines too. For two links in series, l_1 e^(i q_1) + l_2 e^(i (q_1 + q_2)) = e,
solutions go to infinity where |e|^2 vanishes in the complex numbers. With terms in the two cosines
and sines there are six solutions instead of two, and all are finite.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tauloop.kinematics.homotopy.code import PrintedSystem
from tauloop.kinematics.homotopy.monodromy import Family

#: Number of linear terms: two, so that loops of s enclose different systems.
LINEAR_TERMS = 2


class Widenable(Family, Protocol):
    """A family that also states which of its variables get linear terms."""

    @property
    def angles(self) -> tuple[int, ...]:
        """Positions in x of the cosines of angles."""

    @property
    def terms(self) -> tuple[int, ...]:
        """Positions in x of the variables that get linear terms; empty if these do not help."""


class Widened:
    """The family F(x, y) + (s_1 C_1 + s_2 C_2) x + e; s is appended to the known variables."""

    def __init__(self, family: Widenable, rng: np.random.Generator) -> None:
        """Draw C_1 and C_2, whose entries are of order one like the dimensionless equations."""
        self._family = family
        self.is_loop = family.is_loop
        self.is_traceable = True
        self.canonical = family.canonical
        self.invariants = family.invariants
        m = len(family.is_loop)
        self._C = np.zeros((LINEAR_TERMS, m, m), dtype=complex)
        block = np.ix_(
            np.arange(LINEAR_TERMS),
            np.flatnonzero(family.is_loop),
            np.array(family.terms, dtype=int),
        )
        shape = self._C[block].shape
        self._C[block] = rng.normal(size=shape) + 1j * rng.normal(size=shape)

    def linearized(
        self, x: np.ndarray, y: np.ndarray, y_rate: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return F (N, m), F_x (N, m, m) and F_y y' (N, m) of the widened system."""
        F, J, rate = self._family.linearized(x, y[:, :-LINEAR_TERMS], y_rate[:, :-LINEAR_TERMS])
        terms = np.einsum("kij,nj->nki", self._C, x)
        s = y[:, -LINEAR_TERMS:]
        s_rate = y_rate[:, -LINEAR_TERMS:]
        return (
            F + np.einsum("nk,nki->ni", s, terms),
            J + np.einsum("nk,kij->nij", s, self._C),
            rate + np.einsum("nk,nki->ni", s_rate, terms),
        )

    @property
    def printed(self) -> PrintedSystem:
        """The family with linear terms."""
        return PrintedSystem(function=self._family.printed.function, terms=self._C)

    def random_known_variables(self, n: int, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the known variables (n, k) of random members: the machine's y and random s."""
        s = rng.normal(size=(n, LINEAR_TERMS)) + 1j * rng.normal(size=(n, LINEAR_TERMS))
        return np.hstack([np.tile(y[:-LINEAR_TERMS], (n, 1)), s])

    def of_machine(self, y: np.ndarray) -> np.ndarray:
        """Return the known variables (k,) of the machine itself: s = 0."""
        return np.append(y, np.zeros(LINEAR_TERMS))

    def random(self, n: int, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return random points that satisfy the equations without a free constant."""
        return self._family.random(n, y[:-LINEAR_TERMS], rng)
