"""Simulation from many start states under a sampled controller, with one thread per start."""

from __future__ import annotations

from typing import Any

import numpy as np

from tauloop.common.errors import InputError, Problems
from tauloop.common.records import dataclass
from tauloop.common.shown import ReprMixin
from tauloop.export.gpu.devices import THREADS_PER_BLOCK
from tauloop.export.gpu.evaluator import Cuda
from tauloop.integrate.tableau import Tableau
from tauloop.model import Model
from tauloop.simulation.controllers.laws import RUNGE_KUTTA_4, Controller, Loop
from tauloop.simulation.controllers.many import CONTROL_LETTERS, control_arrays, control_text
from tauloop.simulation.controllers.system import ControlLayouts, control_system


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControlledStarts(ReprMixin):
    """Motions from N start states under a controller, with arrays on the device.

    Attributes:
        time: times of the T stored samples (T,), s.
        position, velocity: motion of the platform (N, T, ...); NaN after a run that ended early.
        force: actuator forces, held from each sample to the next (N, T, n_u), N or N m.
        reached: number of samples that each run reached (N,).
        steps: number of integration steps of each run (N,).
        is_whole: whether each run reached the end (N,).
        worst: smallest discriminant of the inverse kinematics, smallest pivot of the linear
            systems, and largest loop residual (N, 3).
    """

    time: np.ndarray
    position: Any
    velocity: Any
    force: Any
    reached: Any
    steps: Any
    is_whole: Any
    worst: Any


class ControlKernel:
    """Machine, controller and integrator as a single kernel that simulates one start per thread.

    It computes the same control loop as `follow`.

    Examples:
        >>> import tauloop as tl
        >>> model = tl.Model(tl.load("delta"))
        >>> from tauloop.simulation.controllers.laws import ComputedTorque
        >>> law = ComputedTorque(bandwidth=60.0)
        >>> cuda = tl.export.gpu.Cuda(device=tl.export.gpu.Processor())
        >>> tl.export.gpu.ControlKernel(model, model, law, cuda).system.states
        6
    """

    def __init__(
        self,
        plant: Model,
        model: Model,
        controller: Controller,
        cuda: Cuda,
        method: Tableau = RUNGE_KUTTA_4,
    ) -> None:
        """Compile the kernel, which takes seconds, or load it from the cache.

        Args:
            plant: the simulated machine.
            model: the machine that the controller assumes.
            controller: the control law. Changed gains need no new compilation.
            cuda: the device and its precision.
            method: an explicit integrator.

        Raises:
            EngineError: the kernel cannot be compiled or loaded; the error states what is missing.
        """
        self._made_for = (plant, model, type(controller), controller.space, method)
        self._device = cuda.device
        self._layouts = ControlLayouts(plant, model, controller)
        self.system = control_system(plant, model, controller)
        self.text = control_text(self.system, method, cuda.precision)
        self.precision = cuda.precision
        self._launch = cuda.device.kernel(self.text, "tl_control", CONTROL_LETTERS, cuda.folder)

    def __call__(
        self, loop: Loop, position: Any, velocity: Any, q: Any, *, every: int = 1
    ) -> ControlledStarts:
        """Simulate a control loop from many start states.

        Args:
            loop: reference, gains and sampling from `simulation.prepared_loop`; its start is not
                used.
            position, velocity: start of the platform (N, n_position), (N, n).
            q: all coordinates at the start (N, n_q), from which Newton's method starts.
            every: store every `every`-th sample.

        Raises:
            InputError: the loop differs from the kernel's; it has a delay, events, a load,
                derivatives or a force callback in Python; or an array has a wrong shape.
        """
        self._require(loop, every)
        loop.method.require_precision(self.precision)
        system = self.system
        n_p = len(loop.position)
        xp = self._device.arrays
        row_sizes = (n_p, system.states - n_p, system.coordinates)
        starts = self._starts(position, velocity, q, row_sizes)
        inputs, shapes = control_arrays(loop, self._layouts, starts, every, xp)
        outputs = [xp.empty(shape, dtype=self.precision.dtype) for shape in shapes]
        states, forces, report = outputs
        n = len(starts[2])
        if n:
            arrays = (
                *(xp.ascontiguousarray(array, dtype=self.precision.dtype) for array in inputs),
                *outputs,
            )
            blocks = -(-n // THREADS_PER_BLOCK)
            sizes = (n, 0, n, len(loop.feedforward), every)
            self._launch(blocks, THREADS_PER_BLOCK, 0, (*sizes, *arrays))
        states = states.transpose(2, 0, 1)
        forces = forces.transpose(2, 0, 1)
        return ControlledStarts(
            time=np.arange(0, len(loop.feedforward), every) * loop.period,
            position=states[:, :, :n_p],
            velocity=states[:, :, n_p:],
            force=forces,
            reached=report[1],
            steps=report[2],
            is_whole=report[0] == 0.0,
            worst=report[3:].T,
        )

    def _starts(
        self, position: Any, velocity: Any, q: Any, row_sizes: tuple[int, int, int]
    ) -> tuple[Any, Any, Any]:
        """Return positions, velocities and coordinates at the start, (N, n) each, on the device.

        Raises:
            InputError: an array has a wrong shape.
        """
        problems = Problems()
        starts: list[Any] = []
        for name, array, size in zip(
            ("position", "velocity", "q"), (position, velocity, q), row_sizes, strict=True
        ):
            with problems.collecting(InputError):
                starts.append(self._device.columns(name, array, self.precision.dtype))
                n = len(starts[0])
                if starts[-1].shape != (n, size):
                    what = f"has shape {starts[-1].shape}, needs ({n}, {size})"
                    problems.add(name, what, "give one row of numbers for each start")
        InputError.raise_if_any(problems)
        return starts[0], starts[1], starts[2]

    def _require(self, loop: Loop, every: int) -> None:
        """Reject loops that differ from the kernel's, and features that kernels do not support."""
        problems = Problems()
        controller = loop.controller
        made_for = (loop.plant, loop.model, type(controller), controller.space, loop.method.tableau)
        if made_for != self._made_for:
            names = ("plant", "model", "control law", "space", "integrator")
            differences = [
                name
                for name, actual, expected in zip(names, made_for, self._made_for, strict=True)
                if actual != expected
            ]
            what = f"differs from the kernel in {', '.join(differences)}"
            problems.add("loop", what, "build a ControlKernel for this loop")
        features = {
            "a delay": loop.delay > 0,
            "events": bool(loop.events),
            "a load": loop.load is not None,
            "derivatives": bool(loop.directions),
            "a force callback in Python": controller.force_callback(loop) is not None,
        }
        for name, is_present in features.items():
            if is_present:
                problem = f"has {name}, which kernels do not support"
                problems.add("loop", problem, "run it with `simulation.CompiledLoop`")
        if every < 1:
            problems.add(
                "every", f"must be at least 1, got {every}", "give 1 to store every sample"
            )
        InputError.raise_if_any(problems)
