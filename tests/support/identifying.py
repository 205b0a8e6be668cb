"""Identifications for tests: the call behind `tauloop identify`, with options by the names of their fields."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import xarray as xr
from printed import printed

from tauloop import Mechanism, Model
from tauloop.display.tables.identification.machine_identification_tables import (
    machine_identification_tables,
)
from tauloop.identification import (
    IdentificationOptions,
    MachineIdentification,
    PreparationOptions,
    TermOptions,
    identify,
)
from tauloop.identification.faults.search import FitFaults
from tauloop.logs import Sensors, measure
from tauloop.motion import SampledMotion


@contextmanager
def without_faults() -> Iterator[None]:
    """Identifications of which the parameters alone are used: no fault is searched, which is half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "tauloop.identification.workflow.faults_of_fit",
            lambda *_arguments, **_options: FitFaults(),
        )
        yield


def options_of(**options: Any) -> IdentificationOptions:
    """Options whose fields stand in whichever class of them has the name."""
    parts = {
        name: kind(
            **{item.name: options.pop(item.name) for item in fields(kind) if item.name in options}
        )
        for name, kind in (("preparation", PreparationOptions), ("terms", TermOptions))
    }
    return IdentificationOptions(**parts, **options)


def identified(machine: Mechanism | Model, *logs: Any, **options: Any) -> dict[str, Any]:
    """The document of an identification, as the command prints it."""
    return dict(
        json.loads(json.dumps(identify(machine, list(logs), options_of(**options)).as_dict()))
    )


def tables_of(result: MachineIdentification) -> str:
    """What the command prints of a result."""
    return printed(machine_identification_tables(result))


def measured(
    machine: Model,
    motion: SampledMotion,
    encoder: float,
    noise: float,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
) -> xr.Dataset:
    """What the drives of a machine would write along a motion of its actuators, with steps of encoders and noise."""
    q = machine.actuators.track(motion.position).q if start is None else start
    forces = machine.actuators.inverse_dynamics(*motion.states, start=q).force
    names, units = machine.output_ports("actuators")
    sensors = Sensors(
        resolution=np.full(len(names), encoder), force_noise=np.full(len(names), noise)
    )
    position_units = machine.actuators.ports.position.units
    return measure(motion.time, motion.position, forces, names, position_units, units, sensors, rng)
