"""``python -m tauloop_papers.gantry_tau.other_machines``: print the cost of physical limits."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tauloop.formats import load
from tauloop.identification import (
    PhysicallyConsistent,
    consistency_cones,
    fit_consistent,
    merge_data,
    parameter_ties,
)
from tauloop.model import Model
from tauloop_papers.gantry_tau.fits import (
    DataSet,
    consistent,
    data_set,
    least_squares,
    nearest,
    predicted,
    relative_rms,
)
from tauloop_papers.gantry_tau.identifiability import designed
from tauloop_papers.gantry_tau.identification import recorded
from tauloop_papers.gantry_tau.plant import Plant
from tauloop_papers.gantry_tau.settings import SETTINGS, TwoRunSettings

#: Seeds of machines on small motions, and of those also on optimized motions.
SEEDS, DESIGNED = range(1, 25), (2, 5, 8, 9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Hold-out errors of consistent fits over those of least squares, worst actuator.

    Attributes:
        sixteen: with the parameters of eq. 5 alone, small motions.
        forty: with all ten parameters of every body, small motions.
        designs: the same as `forty` on every optimized motion; empty if not requested.
        negative: number of moments of inertia that least squares estimates below zero by more than
            their deviation.
    """

    sixteen: float
    forty: float
    designs: tuple[float, ...]
    negative: int


def cost_of_limits(settings: TwoRunSettings, with_designs: bool = False) -> Cost:
    """Record and fit the machine of ``settings.seed`` as in the experiment.

    Raises:
        IdentificationError: data that cannot support a fit.
    """
    mechanism = load(settings.machine)
    structure = mechanism.with_values(dict.fromkeys(settings.removed, 0.0))
    model, rng = Model(structure), np.random.default_rng(settings.seed)
    plant = Plant(settings, model, rng)
    motions = recorded(settings, plant, model, Model(mechanism), rng)
    held_out, built = (
        motions.held_out,
        nearest(parameter_ties(model, settings.parameters), plant.pi),
    )
    small = least_squares("small motions", motions.training, held_out, built)
    ratios = []
    for design in settings.designs if with_designs else ():
        chosen = designed(settings, structure, design)
        longer = len(motions.training) / len(chosen)
        sets = [
            data_set(settings, plant, model, series, rng, design.name, longer=longer)
            for series in chosen
        ]
        free = least_squares(design.name, sets, held_out, built)
        ratios.append(
            _worst(consistent(settings, design.name, model, sets, held_out).rows, free.rows)
        )
    chosen_inertias = [settings.parameters.index(name) for name in settings.inertias]
    return Cost(
        sixteen=_worst(_of_eq_5(model, motions.training, held_out), small.rows),
        forty=_worst(
            consistent(settings, "small motions", model, motions.training, held_out).rows,
            small.rows,
        ),
        designs=tuple(ratios),
        negative=int(np.sum((small.values < -small.deviations)[chosen_inertias])),
    )


def _worst(rows: Sequence[float], free: Sequence[float]) -> float:
    return float(np.max(np.array(rows) / np.array(free)))


def _of_eq_5(model: Model, sets: Sequence[DataSet], held_out: DataSet) -> tuple[float, ...]:
    """Return errors of eq. 5's parameters alone within physical limits."""
    training = merge_data([recorded.data for recorded in sets])
    ties = training.ties
    touched = [
        cone
        for cone in consistency_cones(model.parameters)
        if ties is None or np.any(ties.matrix[cone.columns] != 0.0)
    ]
    fitted = fit_consistent(training, held_out.data, touched, model.pi, PhysicallyConsistent())
    return relative_rms(held_out.forces, predicted(held_out, fitted.parameters))


def costs(settings: TwoRunSettings = SETTINGS) -> Iterator[tuple[int, Cost]]:
    """Yield the costs by seed."""
    for seed in SEEDS:
        yield seed, cost_of_limits(replace(settings, seed=seed), with_designs=seed in DESIGNED)


if __name__ == "__main__":
    for number, cost in costs():
        shown = ", ".join(f"{ratio:.2f}" for ratio in cost.designs)
        sys.stdout.write(
            f"{number}: {cost.sixteen:.2f} {cost.forty:.2f} ({cost.negative} negative) {shown}\n"
        )
