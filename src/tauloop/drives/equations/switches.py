"""Conditions in equations: modes whose changes an integrator locates, or direct decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import casadi as ca


class Switches(ABC):
    """Turns a condition into a 0-or-1 factor of an equation."""

    @abstractmethod
    def above(self, g: ca.SX, name: str) -> ca.SX:
        """Return 1 if g > 0, else 0; `name` is the name of the condition."""

    def smaller(self, x: ca.SX, y: ca.SX, name: str) -> ca.SX:
        """Return the smaller of two expressions."""
        return ca.if_else(self.above(x - y, name), y, x)

    def clipped(self, x: ca.SX, limit: ca.SX, name: str) -> ca.SX:
        """Return x, clipped to [-limit, limit]."""
        over = self.above(x - limit, f"{name} at its limit")
        under = self.above(-x - limit, f"{name} at its lower limit")
        return ca.if_else(over, limit, ca.if_else(under, -limit, x))


@final
class Direct(Switches):
    """Evaluates every condition directly, without a mode."""

    def above(self, g: ca.SX, name: str) -> ca.SX:
        """Return 1 if g > 0, else 0."""
        return g > 0


@final
class SwitchModes(Switches):
    """Replaces every condition by a mode: a symbol with the value 1 or 0, and a guard.

    The mode is 1 while the guard is >= 0, and 0 while it is <= 0. Between events the modes are
    constant, so the equations are smooth. A guard may depend on its own mode: sticking, for example,
    starts and ends at different conditions.
    """

    def __init__(self) -> None:
        """Start without modes."""
        self._symbols: list[ca.SX] = []
        self._guards: list[ca.SX] = []
        self._names: list[str] = []
        self._starts: list[float] = []

    def above(self, g: ca.SX, name: str) -> ca.SX:
        """Return a mode that follows the sign of g."""
        mode = self.mode(name)
        self.guard(mode, g)
        return mode

    def mode(self, name: str, *, start: bool = False) -> ca.SX:
        """Return a new mode; the caller must set its guard."""
        symbol = ca.SX.sym(f"mode{len(self._symbols)}")
        self._symbols.append(symbol)
        self._guards.append(ca.SX(0))
        self._names.append(name)
        self._starts.append(float(start))
        return symbol

    def guard(self, mode: ca.SX, g: ca.SX) -> None:
        """Set the guard of a mode."""
        index = next(i for i, symbol in enumerate(self._symbols) if ca.is_equal(symbol, mode))
        self._guards[index] = g

    @property
    def symbols(self) -> ca.SX:
        """Symbols of all modes (n_s,)."""
        return ca.vertcat(ca.SX(0, 1), *self._symbols)

    @property
    def guards(self) -> ca.SX:
        """Guards of all modes (n_s,)."""
        return ca.vertcat(ca.SX(0, 1), *self._guards)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the conditions, one for each mode."""
        return tuple(self._names)

    @property
    def starts(self) -> tuple[float, ...]:
        """Modes from which the search for consistent initial modes starts."""
        return tuple(self._starts)
