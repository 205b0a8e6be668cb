"""Physical parameters from the minimal ones, with one given value and without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

import tauloop as tl
from tauloop.identification import BaseEstimates, LinkParameters
from tauloop_papers.alike import of_same_parts
from tauloop_papers.spidermill.models import Reduced, Trajectory
from tauloop_papers.spidermill.settings import ReducedSettings


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadOut:
    """Table 1's right column, from our estimates and from the printed ones.

    Attributes:
        unstated: ours, with the parameters that the paper assumes known: one parameter determined,
            a family of four.
        stated: ours, with one of the family from the drawing.
        masses: values (n,) of this one for which the printed estimates are evaluated.
        printed: values (n,) by name that follow from the printed estimates, in the reading of
            eq. 16.
        change: largest change of a force among these, divided by the largest force.
        equations: Newton-Euler equations of the machine in space: stage, links, equations.
    """

    unstated: LinkParameters
    stated: LinkParameters
    masses: np.ndarray
    printed: Mapping[str, np.ndarray]
    change: float
    equations: tuple[tuple[str, int, int], ...]


def read_out(
    settings: ReducedSettings,
    reduced: Reduced,
    estimates: BaseEstimates,
    printed: BaseEstimates,
    on: Trajectory,
) -> ReadOut:
    """Compute masses, centers and inertias of links from the minimal parameters.

    Args:
        settings: settings of the experiment.
        reduced: the reduced model.
        estimates: our estimates.
        printed: the paper's estimates, in the reading of eq. 16.
        on: motion for the comparison of forces.

    Raises:
        IdentificationError: no links have these values.
    """
    machine, drawn = tl.load(settings.machine), settings.drawn
    known = {name: machine.value(name) for name in settings.known}

    def read(base: BaseEstimates, **more: float) -> LinkParameters:
        return tl.link_parameters(machine, base, tl.LinkOptions(known={**known, **more}))

    values: dict[str, list[float]] = {}
    products = []
    for mass in settings.masses:
        member = {
            parameter.name: parameter.value
            for parameter in read(printed, **{drawn: mass}).parameters
            if parameter.value is not None
        }
        for name, value in (member | {drawn: mass}).items():
            values.setdefault(name, []).append(value)
        products.append(
            reduced.products.values({**reduced.mechanism.parameters.values, **member, drawn: mass})
        )
    forces = reduced.columns(on, reduced.other) @ np.array(products).T
    space = tl.reduce_model(
        of_same_parts(settings.spatial, machine), tl.ReductionOptions(states=5, seed=settings.seed)
    )
    return ReadOut(
        unstated=read(estimates),
        stated=read(estimates, **{drawn: machine.value(drawn)}),
        masses=np.array(settings.masses),
        printed={name: np.array(column) for name, column in values.items()},
        change=float(np.ptp(forces, axis=-1).max() / np.abs(forces).max()),
        equations=tuple(
            (count.stage, count.links, count.equations) for count in space.newton_euler
        ),
    )
