"""Identifications for tests: the call behind `tauloop identify`, with options by the names of their fields."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from printed import printed

from tauloop import Mechanism, Model
from tauloop.identification import (
    IdentificationOptions,
    MachineIdentification,
    PreparationOptions,
    TermOptions,
    identify,
)
from tauloop.report.machine_identification_tables import machine_identification_tables


def options_of(**options: Any) -> IdentificationOptions:
    """Options whose fields stand in whichever class of them has the name."""
    parts = {
        name: kind(**{item.name: options.pop(item.name) for item in fields(kind) if item.name in options})
        for name, kind in (("preparation", PreparationOptions), ("terms", TermOptions))
    }
    return IdentificationOptions(**parts, **options)


def identified(machine: Mechanism | Model, *logs: Any, **options: Any) -> dict[str, Any]:
    """The document of an identification, as the command prints it."""
    return dict(json.loads(json.dumps(identify(machine, list(logs), options_of(**options)).as_dict())))


def tables_of(result: MachineIdentification) -> str:
    """What the command prints of a result."""
    return printed(machine_identification_tables(result))
