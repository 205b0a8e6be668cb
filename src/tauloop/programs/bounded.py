"""A step of a program that keeps linear conditions: the nearest point to the origin, interpreted and as C text."""

from __future__ import annotations

import numpy as np

from tauloop.assembly.nearest import DEPENDENT, MISSED, MOST_CHANGES, nearest
from tauloop.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """The point nearest to the origin with G y >= h (see `nearest`).

    Attributes:
        rows: name of G, by rows (n r).
        sides: name of h (n).
        solution: name of y (r).
        count, size: n and r.
    """

    rows: str
    sides: str
    solution: str
    count: int
    size: int

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of what it reads."""
        return (self.rows, self.sides)

    def solve(self, values: dict[str, np.ndarray], n: int) -> np.ndarray:
        """Put the points of n samples among the values; by how much they miss the conditions, of the largest side."""
        rows = np.asarray(values[self.rows]).reshape(n, self.count, self.size)
        found = nearest(rows, np.asarray(values[self.sides]).reshape(n, self.count))
        values[self.solution] = found.point
        return found.missed

    def scalar_text(self) -> list[str]:
        """C lines for one sample; what is missed is added to `residual`."""
        return [
            "    {",
            *self._room("        "),
            f"        residual[0] += tl_nearest({self._arguments(self.rows, self.sides, self.solution)});",
            "    }",
        ]

    def lanes_text(self) -> list[str]:
        """C lines for a block of lanes, one after the other: how many changes each takes depends on its numbers."""
        n, r = self.count, self.size
        return [
            "    for (int l = 0; l < TL_LANES; ++l) {",
            *self._room("        "),
            f"        double rows[{max(n * r, 1)}], sides[{n}], point[{max(r, 1)}];",
            f"        for (int i = 0; i < {n * r}; ++i) rows[i] = {self.rows}[i][l];",
            f"        for (int i = 0; i < {n}; ++i) sides[i] = {self.sides}[i][l];",
            f"        residual[0][l] += tl_nearest({self._arguments('rows', 'sides', 'point')});",
            f"        for (int i = 0; i < {r}; ++i) {self.solution}[i][l] = point[i];",
            "    }",
        ]

    def _room(self, indent: str) -> list[str]:
        r = max(self.size, 1)
        return [f"{indent}double room[{4 * r + 2 * r * r}];", f"{indent}int working[{r}];"]

    def _arguments(self, rows: str, sides: str, point: str) -> str:
        return f"{self.count}, {self.size}, {rows}, {sides}, {point}, room, working"


#: The C function: rows at work are made orthogonal anew at every change, by Gram and Schmidt twice over.
NEAREST_TEXT = f"""\
static double tl_dot(int r, const double *a, const double *b)
{{
    double sum = 0.0;
    for (int i = 0; i < r; ++i) sum += a[i] * b[i];
    return sum;
}}

/* y (r) nearest to the origin with G y >= h (n), after Goldfarb and Idnani; returns what is missed, of the largest h */
static double tl_nearest(int n, int r, const double *G, const double *h, double *y, double *room, int *working)
{{
    double *mu = room, *share = mu + r, *part = share + r, *rest = part + r, *Q = rest + r, *T = Q + r * r;
    double scale = 0.0, longest = 0.0, partial = 0.0, missed = 0.0, total = 0.0;
    int k = 0, added = -1;
    for (int j = 0; j < n; ++j) {{
        const double square = tl_dot(r, G + j * r, G + j * r);
        scale = fabs(h[j]) > scale ? fabs(h[j]) : scale;
        longest = square > longest ? square : longest;
    }}
    for (int a = 0; a < r; ++a) y[a] = 0.0;
    for (int change = 0; change < {MOST_CHANGES}; ++change) {{
        if (added < 0) {{
            double worst = {MISSED!r} * scale;
            for (int j = 0; j < n; ++j) {{
                const double miss = h[j] - tl_dot(r, G + j * r, y);
                int at_work = 0;
                for (int b = 0; b < k; ++b) at_work |= working[b] == j;
                if (!at_work && miss > worst) {{
                    worst = miss;
                    added = j;
                }}
            }}
            if (added < 0) break;
            partial = 0.0;
        }}
        for (int b = 0; b <= k; ++b) {{
            const double *g = G + (b < k ? working[b] : added) * r;
            double *q = b < k ? Q + b * r : rest, *t = b < k ? T + b * r : part;
            for (int i = 0; i < r; ++i) q[i] = g[i];
            for (int a = 0; a < b; ++a) t[a] = 0.0;
            for (int twice = 0; twice < 2; ++twice)
                for (int a = 0; a < b; ++a) {{
                    const double along = tl_dot(r, Q + a * r, q);
                    t[a] += along;
                    for (int i = 0; i < r; ++i) q[i] -= along * Q[a * r + i];
                }}
            if (b < k) {{
                t[b] = sqrt(tl_dot(r, q, q));
                for (int i = 0; i < r; ++i) q[i] /= t[b];
            }}
        }}
        int drop = -1;
        double step = 1e300;
        for (int b = k - 1; b >= 0; --b) {{
            double sum = part[b];
            for (int a = b + 1; a < k; ++a) sum -= T[a * r + b] * share[a];
            share[b] = sum / T[b * r + b];
        }}
        for (int b = 0; b < k; ++b)
            if (share[b] > {DEPENDENT!r} && mu[b] < step * share[b]) {{
                step = mu[b] / share[b];
                drop = b;
            }}
        const double square = tl_dot(r, rest, rest);
        const int moves = square > {DEPENDENT!r} * {DEPENDENT!r} * longest;
        const double full = moves ? (h[added] - tl_dot(r, G + added * r, y)) / square : 1e300;
        const int is_full = moves && full <= step;
        if (is_full) step = full;
        else if (drop < 0) break;
        for (int b = 0; b < k; ++b) mu[b] -= step * share[b];
        partial += step;
        for (int i = 0; moves && i < r; ++i) y[i] += step * rest[i];
        if (is_full) {{
            working[k] = added;
            mu[k++] = partial;
            added = -1;
        }} else {{
            for (int b = drop + 1; b < k; ++b) {{
                working[b - 1] = working[b];
                mu[b - 1] = mu[b];
            }}
            --k;
        }}
    }}
    for (int i = 0; i < r; ++i) y[i] = added < 0 ? 0.0 : partial * G[added * r + i];
    for (int b = 0; b < k; ++b)
        for (int i = 0; i < r; ++i) y[i] += mu[b] * G[working[b] * r + i];
    for (int j = 0; j < n; ++j) {{
        const double miss = h[j] - tl_dot(r, G + j * r, y);
        missed = miss > missed ? miss : missed;
        total += miss;
    }}
    missed = scale > 0.0 ? missed / scale : missed;
    return total == total ? missed : total;
}}
"""
