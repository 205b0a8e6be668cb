"""C code of a plant that advances one control period per call.

It is built as a program with a communication link, or as a library.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS, build_without_cache
from tauloop.compiler.c.calling.library import Library, require_compiler
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import number
from tauloop.drives.machine.lines import rigid_machine
from tauloop.export.fmu.plant import plant_functions
from tauloop.export.fmu.variables import FmuVariable, table
from tauloop.export.hil.client import HEAD, MAX_PACKET_DOUBLES
from tauloop.export.hil.options import PlantOptions
from tauloop.integrate.integrators import DEFAULT_MAX_STEPS
from tauloop.model import Model
from tauloop.model.model import MachineSource, modeled

_HEADERS = (
    "<math.h>",
    "<stdbool.h>",
    "<stddef.h>",
    "<stdint.h>",
    "<stdio.h>",
    "<stdlib.h>",
    "<string.h>",
)


class PlantCode:
    """The C source of a plant, and the contents of its packets.

    Attributes:
        method: the integrator.
        inputs: variables of the forces in a command.
        outputs: variables of the values in a measurement.
    """

    def __init__(self, machine: MachineSource, options: PlantOptions) -> None:
        """Build the equations; for errors see `plant_functions`."""
        self.model, self.options = modeled(machine), options
        self._has_lines = any(actuator.drive for actuator in self.model.mechanism.actuators)
        self.method = options.integrator(has_lines=self._has_lines)
        self.functions = plant_functions(self.model, self.method.atol)
        variables = self.functions.variables
        count = len(variables.inputs) if self._has_lines else len(self.model.mechanism.actuators)
        self.inputs: tuple[FmuVariable, ...] = variables.inputs[:count]
        self.outputs: tuple[FmuVariable, ...] = variables.outputs

    def text(self) -> str:
        """Return the source, which is a program if `PLANT_MAIN` is defined."""
        functions, method = self.functions, self.method
        first, rtol, atol, longest = (number(min(value, 1e300)) for value in method.numbers)
        sizes = {"TL_FIRST": first, "TL_RTOL": rtol, "TL_ATOL": atol, "TL_LONGEST": longest}
        sizes |= {
            "TL_DEFAULT_MAX_STEPS": str(DEFAULT_MAX_STEPS),
            "TL_TOKEN": '""',
            "NP_FORCES": str(len(self.inputs)),
        }
        # compiled on the computer where it runs: no table of parameters is needed
        sizes |= {"NP_ACTUATORS": str(len(self.model.mechanism.actuators)), "TL_DAMAGED": "0"}
        loop = [
            *(f"#define {key} {value}" for key, value in sizes.items()),
            functions.tables(),
            *self._brakes(),
            *(c_file("tauloop.export.fmu", name) for name in ("instance.c", "explain.c")),
            c_file("tauloop.export.controller", "plant_link.h"),
            c_file("tauloop.export.hil", "plant.c"),
        ]
        whole = functions.system.source(
            method.tableau, "\n".join(loop), known=functions.known, further=functions.further
        )
        return "\n".join(
            ["#define _GNU_SOURCE", *(f"#include {header}" for header in _HEADERS), whole]
        )

    def hold(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return actuator index, effective mass, limit and holding force of each commanded force.

        Masses and holding forces are those of the start pose. Limits are 0 for unlimited forces.
        Masses and holding forces are 0 if the numbers of actuators and degrees of freedom differ.
        The force of an actuator is shared equally by the motors of its drive line, each divided by
        its ratio.
        """
        mechanism = self.model.mechanism
        if self._has_lines:
            mechanism = rigid_machine(mechanism, with_dry=False)
        actuators, n = self.model.mechanism.actuators, len(mechanism.actuators)
        mass, force = np.zeros(n), np.zeros(n)
        if n == self.model.platform.ports.velocity.size:
            model = Model(mechanism) if self._has_lines else self.model
            q, at_rest = model.assembly.q[None], np.zeros((1, n))
            position = model.actuator_position(q)
            mass = np.diagonal(model.actuators.mass_matrix(position, start=q)[0])
            force = model.actuators.inverse_dynamics(position, at_rest, at_rest, start=q).force[0]
        rows: list[tuple[int, float, float, float]] = []
        for i, actuator in enumerate(actuators):
            line = actuator.drive
            if line is None:
                rows.append((i, mass[i], actuator.force, force[i]))
                continue
            ratios, value = line.ratios(), mechanism.value
            for motor in line.motors:
                share = 1.0 / (value(ratios[motor.on]) * len(line.motors))
                limit = np.inf if motor.torque is None else value(motor.torque)
                rows.append((i, share * mass[i], limit, share * force[i]))
        actuator_of, masses, limits, forces = np.array(rows).T
        limits = np.where(np.isfinite(limits), limits, 0.0)
        return actuator_of.astype(int), masses, limits, forces

    def _brakes(self) -> list[str]:
        """Return the tables of masses, limits and holding forces for the brakes."""
        actuator_of, mass, limit, force = self.hold()
        rows = {"tl_mass": mass, "tl_limit": limit, "tl_hold": force}
        return [
            f"static const int tl_of[NP_FORCES] = {{{', '.join(map(str, actuator_of))}}};",
            *(table(name, row) for name, row in rows.items()),
        ]

    def program(self, cache: Path | None = None) -> bytes:
        """Return the executable.

        Raises:
            InputError: a measurement or a command does not fit into a packet.
            EngineError: no C compiler was found, or compilation fails.
        """
        width = max(len(self.inputs), len(self.outputs))
        largest = MAX_PACKET_DOUBLES - HEAD
        if width > largest:
            what = f"a packet would need {width} values, but it holds at most {largest}"
            remedy = "give a machine with fewer actuators and drive lines"
            raise InputError.of(self.model.mechanism.name, what, remedy)
        flags = tuple(flag for flag in PORTABLE_FLAGS if flag not in ("-shared", "-fPIC"))
        compiler = replace(require_compiler(), flags=(*flags, "-DPLANT_MAIN", "-pthread"))
        return build_without_cache(
            self.text(), compiler, further=("-lrt",), folder=cache
        ).read_bytes()

    def library(self, cache: Path | None = None) -> Library:
        """Return the plant as a library; for errors see `program`."""
        return Library.create(
            self.text(), replace(require_compiler(), flags=PORTABLE_FLAGS), folder=cache
        )


class CompiledPlant:
    """The plant within this process, with results identical to those over a link.

    Attributes:
        code: C code, inputs and outputs.
        output: current measurement (n,).
    """

    def __init__(
        self,
        machine: MachineSource,
        options: PlantOptions | None = None,
        *,
        cache: Path | None = None,
    ) -> None:
        """Compile the plant or take it from the cache, and begin at rest at the reference pose.

        Raises:
            EngineError: there is no compiler, or compilation fails.
            PoseError: no motion is possible from this pose.

        Examples:
            >>> import tauloop as tl
            >>> plant = tl.export.hil.CompiledPlant(tl.load("five_bar"))
            >>> [variable.name for variable in plant.code.inputs]
            ['motor_1.force', 'motor_2.force']
        """
        self.code = PlantCode(machine, options or PlantOptions())
        library = self.code.library(cache)
        self._begin = library.function("plant_begin", "d*", "i")
        self._step = library.function("plant_step", "**", "i")
        self._digest = library.function("plant_digest", "", "n")
        self.output = np.zeros(len(self.code.outputs))
        self.begin()

    def begin(self) -> None:
        """Start again at rest at the reference pose.

        Raises:
            PoseError: no motion is possible from this pose.
        """
        if not self._begin(self.code.options.period, self.output):
            raise PoseError.of(
                "plant",
                "cannot begin: its loops do not close, or the pose is singular",
                "see `tauloop check`",
            )

    def step(self, force: np.ndarray) -> np.ndarray:
        """Simulate one period under forces (n,), and return the measurement at its end.

        Raises:
            PoseError: the motion cannot continue.
        """
        if not self._step(np.ascontiguousarray(force, dtype=float), self.output):
            raise PoseError.of(
                "plant",
                "the motion cannot continue: out of reach or singular",
                "check the controller's force commands",
            )
        return self.output.copy()

    @property
    def digest(self) -> str:
        """Hash of all forces and outputs so far, 16 hexadecimal digits."""
        return f"{self._digest():016x}"
