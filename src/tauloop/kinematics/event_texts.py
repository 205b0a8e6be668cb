"""Parsing of events given as text, such as ``platform.z<-0.7``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.equations.named_values import full_name
from tauloop.integrate.events import Event, comparison
from tauloop.kinematics.singularities import SINGULARITY_KINDS, singularities
from tauloop.model import Model

#: Name of the smallest of the three distances from singularities.
ANY_KIND = "singularity"
#: Coordinates (N, n_q) and velocities (N, n_v) -> values (N,).
Quantity = Callable[[np.ndarray, np.ndarray], np.ndarray]


def parse_events(
    model: Model, until: Sequence[str | Event], record: Sequence[str | Event]
) -> tuple[Event, ...]:
    """Return the events given as text or as objects.

    A text compares one of these quantities with a number:

    - a coordinate, ``platform.z<-0.7`` (SI);
    - a velocity, ``velocity.platform.z>0.5`` (SI);
    - the distance from singularities (1 far, 0 singular), ``singularity<0.05``, or the distance
      from one kind of singularity (see `tauloop.kinematics.singularities`).

    Args:
        model: the machine.
        until: events that end the simulation.
        record: events that are only recorded.

    Raises:
        InputError: texts that cannot be read; all are listed at once.
    """
    texts: list[Event] = []
    problems = Problems()
    for where, events, is_terminal in (("until", until, True), ("record", record, False)):
        for event in events:
            with problems.collecting(InputError):
                texts.append(
                    event if isinstance(event, Event) else _event(model, where, event, is_terminal)
                )
    InputError.raise_if_any(problems)
    return tuple(texts)


def _event(model: Model, option: str, text: str, is_terminal: bool) -> Event:
    compared = comparison(option, text, is_terminal=is_terminal)
    quantity = _quantity(model, option, compared.name)
    return Event(
        name=compared.label,
        function=lambda _, q, v: quantity(q, v) - compared.value,
        direction=compared.direction,
        is_terminal=is_terminal,
    )


def _quantity(model: Model, option: str, name: str) -> Quantity:
    if name == ANY_KIND:
        return lambda q, _: np.min(
            [singularities(model, q).distance(kind) for kind in SINGULARITY_KINDS], axis=0
        )
    if name in SINGULARITY_KINDS:
        return lambda q, _: singularities(model, q).distance(name)
    quantity, dot, rest = name.partition(".")
    is_rate = quantity == "velocity" and bool(dot)
    wanted = rest if dot and quantity in ("velocity", "position") else name
    names = model.topology.velocity_names if is_rate else model.topology.coordinate_names
    column = names.index(full_name(names, wanted, option))
    if is_rate:
        return lambda _, v: v[:, column]
    return lambda q, _: q[:, column]
