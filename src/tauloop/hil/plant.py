"""A machine as C that steps from period to period: a program with a link, or a library for one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from tauloop.common.errors import InputError, PoseError
from tauloop.compiler.c.calling.compiler import PORTABLE_FLAGS, build
from tauloop.compiler.c.calling.library import Library, require_compiler
from tauloop.compiler.c.printing.c_helpers import c_file
from tauloop.compiler.c.printing.source import number
from tauloop.drives.machine.lines import rigid_machine
from tauloop.export.fmu.plant import plant_functions
from tauloop.export.fmu.variables import FmuVariable, table
from tauloop.hil.client import HEAD, MOST
from tauloop.hil.options import PlantOptions
from tauloop.integrate.integrators import MOST_STEPS
from tauloop.model import Model
from tauloop.model.model import MachineSource, modelled

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
    """The C text of a plant, and what its packets hold.

    Attributes:
        method: the integrator.
        inputs: forces of a command.
        outputs: what a measurement holds.
    """

    def __init__(self, machine: MachineSource, options: PlantOptions) -> None:
        """Put the equations together; errors as of `plant_functions`."""
        self.model, self.options = modelled(machine), options
        self._has_lines = any(actuator.drive for actuator in self.model.mechanism.actuators)
        self.method = options.integrator(has_lines=self._has_lines)
        self.functions = plant_functions(self.model, self.method.atol)
        variables = self.functions.variables
        count = len(variables.inputs) if self._has_lines else len(self.model.mechanism.actuators)
        self.inputs: tuple[FmuVariable, ...] = variables.inputs[:count]
        self.outputs: tuple[FmuVariable, ...] = variables.outputs

    def text(self) -> str:
        """The source; with `PLANT_MAIN` defined it is a program."""
        functions, method = self.functions, self.method
        first, rtol, atol, longest = (number(min(value, 1e300)) for value in method.numbers)
        sizes = {"TL_FIRST": first, "TL_RTOL": rtol, "TL_ATOL": atol, "TL_LONGEST": longest}
        sizes |= {
            "TL_MOST_STEPS": str(MOST_STEPS),
            "TL_TOKEN": '""',
            "NP_FORCES": str(len(self.inputs)),
        }
        # compiled where it runs: no table of parameters travels
        sizes |= {"NP_ACTUATORS": str(len(self.model.mechanism.actuators)), "TL_DAMAGED": "0"}
        loop = [
            *(f"#define {key} {value}" for key, value in sizes.items()),
            functions.tables(),
            *self._brakes(),
            *(c_file("tauloop.export.fmu", name) for name in ("instance.c", "explain.c")),
            c_file("tauloop.export.controller", "plant_link.h"),
            c_file("tauloop.hil", "plant.c"),
        ]
        whole = functions.system.source(
            method.tableau, "\n".join(loop), known=functions.known, further=functions.further
        )
        return "\n".join(
            ["#define _GNU_SOURCE", *(f"#include {header}" for header in _HEADERS), whole]
        )

    def hold(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Of each force the actuator that it acts on, the mass that it moves, its limit, and what holds at the start.

        Limits are 0 where there are none; all else is where actuators are more or fewer than
        freedoms. Motors of a drive line share what their actuator needs, over their ratios.
        """
        mechanism = (
            rigid_machine(self.model.mechanism, with_dry=False)
            if self._has_lines
            else self.model.mechanism
        )
        actuators, n = self.model.mechanism.actuators, len(mechanism.actuators)
        mass, force = np.zeros(n), np.zeros(n)
        if n == self.model.platform.ports.velocity.size:
            model = Model(mechanism) if self._has_lines else self.model
            q, rest = model.assembly.q[None], np.zeros((1, n))
            position = model.actuator_position(q)
            mass = np.diagonal(model.actuators.mass_matrix(position, start=q)[0])
            force = model.actuators.inverse_dynamics(position, rest, rest, start=q).force[0]
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
        of, masses, limits, forces = np.array(rows).T
        return of.astype(int), masses, np.where(np.isfinite(limits), limits, 0.0), forces

    def _brakes(self) -> list[str]:
        """Tables of what brakes hold with."""
        of, mass, limit, force = self.hold()
        rows = {"tl_mass": mass, "tl_limit": limit, "tl_hold": force}
        return [
            f"static const int tl_of[NP_FORCES] = {{{', '.join(map(str, of))}}};",
            *(table(name, row) for name, row in rows.items()),
        ]

    def program(self, cache: Path | None = None) -> bytes:
        """The executable.

        Raises:
            InputError: a measurement or a command does not fit into a packet.
            EngineError: there is no compiler, or it fails.
        """
        width = max(len(self.inputs), len(self.outputs))
        if width > MOST - HEAD:
            what = f"the plant has {width} values to send, and a packet holds {MOST - HEAD}"
            raise InputError.of(
                self.model.mechanism.name,
                what,
                "give a machine with fewer actuators and drive lines",
            )
        flags = tuple(flag for flag in PORTABLE_FLAGS if flag not in ("-shared", "-fPIC"))
        compiler = replace(require_compiler(), flags=(*flags, "-DPLANT_MAIN", "-pthread"))
        return build(self.text(), compiler, further=("-lrt",), folder=cache).read_bytes()

    def library(self, cache: Path | None = None) -> Library:
        """The same as a library; errors as of `program`."""
        return Library.made(
            self.text(), replace(require_compiler(), flags=PORTABLE_FLAGS), folder=cache
        )


class CompiledPlant:
    """The plant within this process: what a controller drives in a simulation, to the last bit as over a link.

    Attributes:
        code: its text, and what is taken and given.
        output: what it measures now (n,).
    """

    def __init__(
        self,
        machine: MachineSource,
        options: PlantOptions | None = None,
        *,
        cache: Path | None = None,
    ) -> None:
        """Compile it, or find it in the cache, and begin at rest at the reference pose.

        Raises:
            EngineError: there is no compiler, or it fails.
            PoseError: there is no motion from there.

        Examples:
            >>> import tauloop as tl
            >>> plant = tl.hil.CompiledPlant(tl.load("five_bar"))
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
        """Begin anew.

        Raises:
            PoseError: there is no motion from the start.
        """
        if not self._begin(self.code.options.period, self.output):
            raise PoseError.of(
                "plant",
                "does not begin: its loops do not close, or it is singular",
                "see `tauloop check`",
            )

    def step(self, force: np.ndarray) -> np.ndarray:
        """One period under forces (n,); what it measures at its end.

        Raises:
            PoseError: the motion has no way on.
        """
        if not self._step(np.ascontiguousarray(force, dtype=float), self.output):
            raise PoseError.of(
                "plant", "the motion has no way on: out of reach or singular", "see what drives it"
            )
        return self.output.copy()

    @property
    def digest(self) -> str:
        """Of all forces and all outputs so far, 16 hexadecimal digits: equal where every bit is."""
        return f"{self._digest():016x}"
