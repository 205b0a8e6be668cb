"""Tolerances of least cost within linear limits: convex and mixed-integer programs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tauloop.common.records import dataclass
from tauloop.design.tolerances.error_equations import Array

#: Relative gap between cost and lower bound at which the search for grades stops.
GAP = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContinuousAllocation:
    """Optimal continuous tolerances.

    Attributes:
        tolerances: (m,) feasible tolerances.
        cost: cost of these tolerances.
        lower_bound: value of the dual function; no feasible tolerances cost less.
        prices: (r,) decrease of the cost per unit of each limit (multipliers of the dual problem).
    """

    tolerances: Array
    cost: float
    lower_bound: float
    prices: Array


def continuous_allocation(rows: Array, limits: Array, costs: Array) -> ContinuousAllocation:
    """Return t > 0 that minimizes Σ kᵢ / tᵢ with A t <= b.

    The dual function is g(λ) = 2 Σ √(kᵢ (Aᵀλ)ᵢ) - bᵀλ, with tᵢ = √(kᵢ / (Aᵀλ)ᵢ).

    Args:
        rows: A (r, m), not negative, with an entry in each column.
        limits: b (r,), positive.
        costs: k (m,), positive.
    """
    from scipy.optimize import minimize

    scale = rows / limits[:, None]

    def negative_dual(price: Array) -> tuple[float, Array]:
        load = np.maximum(price @ scale, np.finfo(float).tiny)
        value = 2.0 * np.sqrt(costs * load).sum() - price.sum()
        gradient = scale @ np.sqrt(costs / load) - 1.0
        return -value, -gradient

    # For a single limit, this price is the optimum, so that the start has the right magnitude.
    start = np.full(len(limits), np.sqrt(costs * scale.sum(axis=0)).sum() ** 2 / len(limits) ** 2)
    solution = minimize(
        negative_dual,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(limits),
        options={"maxiter": 5000, "maxfun": 20000, "ftol": 1e-15, "gtol": 1e-12},
    )
    price = np.asarray(solution.x)
    load = np.maximum(price @ scale, np.finfo(float).tiny)
    tolerances = np.sqrt(costs / load)
    tolerances = tolerances / (scale @ tolerances).max()
    return ContinuousAllocation(
        tolerances=tolerances,
        cost=float((costs / tolerances).sum()),
        lower_bound=-float(solution.fun),
        prices=price / limits,
    )


def graded_allocation(
    rows: Array, limits: Array, costs: Array, menu: Sequence[Sequence[float]]
) -> tuple[Array | None, float]:
    """Return the choice of tolerances (m,) with the smallest Σ kᵢ / tᵢ and A t <= b, and its cost.

    Args:
        rows: A (r, m).
        limits: b (r,), positive.
        costs: k (m,), positive.
        menu: tolerances to choose from, for each of the m parameters.

    Returns:
        None and infinity if no choice satisfies the limits.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    values = np.concatenate([np.asarray(item, dtype=float) for item in menu])
    owner = np.repeat(np.arange(len(menu)), [len(item) for item in menu])
    one_each = (owner[None] == np.arange(len(menu))[:, None]).astype(float)
    scaled = rows[:, owner] * values / limits[:, None]
    solution = milp(
        costs[owner] / values,
        integrality=np.ones(len(values)),
        bounds=Bounds(0.0, 1.0),
        constraints=[
            LinearConstraint(scaled, -np.inf, 1.0),
            LinearConstraint(one_each, 1.0, 1.0),
        ],
        options={"mip_rel_gap": GAP},
    )
    if solution.x is None:
        return None, np.inf
    picked = [int(np.argmax(np.where(owner == i, solution.x, -1.0))) for i in range(len(menu))]
    chosen = values[picked]
    return chosen, float((costs / chosen).sum())
