"""Preloads of cables in words or numbers, and struts that are called cables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop.assembly.named_values import named_values
from tauloop.assembly.ports import Port
from tauloop.errors import InputError, Problem
from tauloop.mechanism.cables import cables, called_cables
from tauloop.mechanism.quantities import pairs_reader
from tauloop.model.force_sharing import EQUAL_SHARES, ForceSharing
from tauloop.model.model import Model
from tauloop.programs import Forces


def sharing_of(model: Model, preload: str | float | Mapping[str, str | float] | None) -> ForceSharing:
    """How redundant actuators share forces when cables are preloaded.

    Args:
        model: the machine.
        preload: tension of all cables, N, or of some by name, or either in words: ``50``, ``cable1=50 N,cable2=40``.

    Raises:
        InputError: there are no cables, or a name or a number is wrong.
    """
    if preload is None:
        return EQUAL_SHARES
    names = tuple(cables(model.mechanism))
    if not names:
        remedy = "give rods `tension` in the machine file"
        raise InputError(Problem(where="preload", what="the machine has no cables", remedy=remedy))
    named: str | float | Mapping[str, str | float] = preload
    if isinstance(preload, str):
        try:
            named = float(preload)
        except ValueError:
            named = pairs_reader("preload")(preload)
    if not isinstance(named, Mapping):
        return ForceSharing(preload=float(named))
    port = Port(name="preload", columns=names, units=("N",) * len(names))
    wanted = named_values(port, "preload", named, np.zeros(len(names)))
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
