"""Kinematics modules for LinuxCNC, compiled as plain libraries, and poses that they are tried at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from compiled_machines import model
from scipy.spatial.transform import Rotation

import tauloop as tl
from tauloop.compiler.c.calling.library import Library
from tauloop.export.linuxcnc import LinuxcncExport

#: The machines that the issue of these modules names.
MACHINES = ("linear_delta", "delta", "hexapod", "gantry_tau_3dof", "five_bar")
#: Both ways as functions that a library shows.
_ENTRIES = """
int inverse(const double *world, const double *pins, double *joint, double *health);
int inverse(const double *world, const double *pins, double *joint, double *health)
{
    return tauloop_inverse(world, pins, joint, health);
}

int forward(const double *joint, const double *pins, double *last, double *world, double *health);
int forward(const double *joint, const double *pins, double *last, double *world, double *health)
{
    return tauloop_forward(joint, pins, last, world, health);
}

int hash(const double *pins);
int hash(const double *pins)
{
    return (int)tauloop_hash(pins);
}
"""


@dataclass(frozen=True)
class CompiledModule:
    """A module's own functions, called directly."""

    export: LinuxcncExport
    code: Any
    reference: np.ndarray

    @property
    def pins(self) -> np.ndarray:
        return np.array([pin.value for pin in self.export.pins] + [0.0])

    def hash(self, pins: np.ndarray) -> int:
        """What the module makes of the figures on its pins."""
        return int(self.code.function("hash", "*", "i")(pins)) % 2**32

    def inverse(
        self, world: np.ndarray, pins: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Status (N,) and joints (N, n), mm and deg; what is refused keeps not-a-number."""
        call, health = self.code.function("inverse", "****", "i"), np.zeros(4)
        joints = np.full((len(world), len(self.export.layout.joints)), np.nan)
        figures = self.pins if pins is None else pins
        status = [
            call(np.array(w), figures, joint, health)
            for w, joint in zip(world, joints, strict=True)
        ]
        return np.array(status), joints

    def forward(
        self, joints: np.ndarray, pins: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Status (N,) and the world (N, 6), each near the one before."""
        call, health, last = (
            self.code.function("forward", "*****", "i"),
            np.zeros(4),
            self.reference.copy(),
        )
        world = np.full((len(joints), 6), np.nan)
        figures = self.pins if pins is None else pins
        status = [
            call(np.array(j), figures, last, w, health) for j, w in zip(joints, world, strict=True)
        ]
        return np.array(status), world


def program_text(export: LinuxcncExport) -> str:
    """The module without what LinuxCNC calls."""
    return export.files[f"{export.name}.h"] + _ENTRIES


@cache
def compiled(name: str) -> CompiledModule:
    """The module of a shipped machine."""
    export = tl.export_linuxcnc(model(name))
    return CompiledModule(
        export, Library.create(program_text(export)), np.array(model(name).assembly.q)
    )


def poses(name: str, count: int = 36) -> tuple[np.ndarray, np.ndarray]:
    """The tool in the world (N, 6) and the joints (N, n), mm and deg, as Tauloop has them at some of its states.

    The tool's place and rotation are those of the model's own function of the tool.
    """
    machine = model(name)
    q = machine.assembly.states[:count]
    tool = machine.platform.tool(machine.platform_position(q), start=q)
    world = np.zeros((len(q), 6))
    letters = {axis.number for axis in compiled(name).export.layout.axes}
    world[:, :3] = 1e3 * tool.place
    if 3 in letters:
        world[:, 3:] = Rotation.from_matrix(tool.rotation).as_euler("xyz", degrees=True)
    world[:, [k for k in range(6) if k not in letters]] = 0.0
    return world, in_units(name, machine.actuator_position(q))


def in_units(name: str, actuators: np.ndarray) -> np.ndarray:
    """Positions of actuators (N, n) in mm and deg."""
    turns = [joint.is_angular for joint in compiled(name).export.layout.joints]
    return np.asarray(np.where(turns, np.degrees(actuators), 1e3 * actuators))
