"""Cables on the command line: preloads, tensions, and struts that are called cables."""

from __future__ import annotations

import numpy as np

from tauloop.assembly.ports import Port
from tauloop.cli.assigned import assigned
from tauloop.cli.output import console, table
from tauloop.errors import InputError, Problem
from tauloop.mechanism.cables import cables, called_cables
from tauloop.model import ForceSharing, Model
from tauloop.model.force_sharing import EQUAL_SHARES
from tauloop.programs import Forces


def sharing_of(model: Model, preload: str | None) -> ForceSharing:
    """How redundant actuators share forces; a single number preloads all cables alike.

    Raises:
        InputError: there are no cables, or a name or a number is wrong.
    """
    if preload is None:
        return EQUAL_SHARES
    names = tuple(cables(model.mechanism))
    if not names:
        remedy = "give rods `tension` in the machine file"
        raise InputError(Problem(where="--preload", what="the machine has no cables", remedy=remedy))
    try:
        return ForceSharing(preload=float(preload))
    except ValueError:
        port = Port(name="preload", columns=names, units=("N",) * len(names))
        wanted = assigned(port, "--preload", preload, np.zeros(len(names)))
        return ForceSharing(preload={name: float(value) for name, value in zip(names, wanted, strict=True) if value})


def pushed_cables(model: Model, forces: Forces) -> list[str]:
    """A word on rods that are called cables and are pushed, since nothing bounds their tension."""
    rows = {name.partition(":")[0]: i for i, name in enumerate(forces.closure_names)}
    named = [name for name in called_cables(model.mechanism) if name in rows]
    push = np.atleast_2d(forces.closure_force)[:, [rows[name] for name in named]].max(axis=0)
    found = [f"{name} (up to {value:.4g} N)" for name, value in zip(named, push, strict=True) if value > 0.0]
    if not found:
        return []
    return [f"called cables, but pushed like struts: {', '.join(found)}; give them `tension` bounds if they are cables"]


def print_tensions(forces: Forces) -> None:
    """Tensions of cables, over all samples; nothing where there are none."""
    if forces.tension is None:
        return
    rows = table("Tensions of cables", "cable", "tension", "unit", numeric=(1,))
    values = np.atleast_2d(forces.tension)
    for i, name in enumerate(forces.tension_names):
        text = f"{values[0, i]:.6g}" if len(values) == 1 else f"{values[:, i].min():.5g} to {values[:, i].max():.5g}"
        rows.add_row(name, text, "N")
    console().print(rows)
