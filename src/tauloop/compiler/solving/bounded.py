"""Step of a program that satisfies linear conditions: the nearest point to the origin."""

from __future__ import annotations

import numpy as np

from tauloop.common.records import dataclass
from tauloop.equations.assembly.nearest import nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """The point nearest to the origin with G y >= h (see `nearest`).

    Attributes:
        rows: name of the value G, stored by rows (n r).
        sides: name of the value h (n).
        solution: name of the value y (r).
        count, size: number of conditions n, and size r of y.
    """

    rows: str
    sides: str
    solution: str
    count: int
    size: int

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the step's inputs."""
        return (self.rows, self.sides)

    def solve(self, values: dict[str, np.ndarray], n: int) -> np.ndarray:
        """Add the points of n samples to the values; return their relative violations."""
        rows = np.asarray(values[self.rows]).reshape(n, self.count, self.size)
        solution = nearest(rows, np.asarray(values[self.sides]).reshape(n, self.count))
        values[self.solution] = solution.point
        return solution.missed

    def scalar_text(self) -> list[str]:
        """Return C lines for one sample, which add the violation to `residual`.

        Without unknowns, the code only checks conditions and needs no arrays of rows or points.
        """
        rows, point = (self.rows, self.solution) if self.size else ("room", "room")
        return [
            "    {",
            *self._room("        "),
            f"        residual[0] += tl_nearest({self._arguments(rows, self.sides, point)});",
            "    }",
        ]

    def lanes_text(self) -> list[str]:
        """Return C lines that process the lanes of a block one after the other."""
        n, r = self.count, self.size
        read = [f"        for (int i = 0; i < {n * r}; ++i) rows[i] = {self.rows}[i][l];"]
        written = [f"        for (int i = 0; i < {r}; ++i) {self.solution}[i][l] = point[i];"]
        return [
            "    for (int l = 0; l < TL_LANES; ++l) {",
            *self._room("        "),
            f"        double rows[{max(n * r, 1)}], sides[{n}], point[{max(r, 1)}];",
            *(read if r else []),
            f"        for (int i = 0; i < {n}; ++i) sides[i] = {self.sides}[i][l];",
            f"        residual[0][l] += tl_nearest({self._arguments('rows', 'sides', 'point')});",
            *(written if r else []),
            "    }",
        ]

    def _room(self, indent: str) -> list[str]:
        r = max(self.size, 1)
        return [f"{indent}double room[{4 * r + 2 * r * r}];", f"{indent}int working[{r}];"]

    def _arguments(self, rows: str, sides: str, point: str) -> str:
        return f"{self.count}, {self.size}, {rows}, {sides}, {point}, room, working"
