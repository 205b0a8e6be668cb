"""The generated controller in `tauloop control follow`: exported code in a simulation."""

from __future__ import annotations

from dataclasses import replace
from typing import final

import numpy as np

from tauloop.common.errors import InputError, PoseError, Problem, solving
from tauloop.common.keywords import keywords
from tauloop.common.progress import Progress
from tauloop.common.records import dataclass
from tauloop.export.controller.controller import CompiledController
from tauloop.export.controller.options import LAWS, ControllerOptions
from tauloop.model.model import MachineSource
from tauloop.simulation.controllers.laws import Controller, ForceCallback, Loop
from tauloop.simulation.controllers.workflow import ControlComparison, ControlOptions, follow_path


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedLaw(Controller):
    """A control law that runs the code of `tauloop export controller`.

    Attributes:
        options: options of the generated controller; the loop replaces the sampling rate and limits
            the forces.
    """

    options: ControllerOptions

    @classmethod
    def of(cls, options: ControllerOptions) -> GeneratedLaw:
        """Return the law for some options."""
        # the generated code takes the reference as platform motion, even for errors in joint space
        return cls(
            bandwidth=options.bandwidth, damping=options.damping, space="platform", options=options
        )

    @property
    def title(self) -> str:
        """Return the name of the law."""
        return self.options.controller

    def force_callback(self, loop: Loop) -> ForceCallback:
        """Return a function that replaces the forces by those of the generated code."""
        machine_limit = np.where(np.isfinite(loop.limit), loop.limit, 1e99)
        option_limit = np.broadcast_to(self.options.limit or (1e99,), machine_limit.shape)
        limit = np.minimum(machine_limit, option_limit)
        options = replace(
            self.options,
            rate=1.0 / loop.period,
            limit=tuple(limit.tolist()),
            velocity_differences=False,
        )
        controller = CompiledController(loop.model, options)
        q, speed, acceleration = loop.reference
        position = loop.model.platform.ports.at(q)
        equations = controller.equations

        def forces(
            time: float, measured: np.ndarray, measured_speed: np.ndarray, _: np.ndarray
        ) -> np.ndarray:
            k = round(time / loop.period)
            inputs = equations.sample(
                time,
                k + 1.0,
                position=measured,
                speed=measured_speed,
                reference=position[k],
                reference_speed=speed[k],
                reference_acceleration=acceleration[k],
            )
            return controller.step(inputs).force

        return forces


@keywords(ControlOptions)
@solving(PoseError)
def follow_path_with_exported_code(
    machine: MachineSource, options: ControlOptions, *, progress: Progress | None = None
) -> ControlComparison:
    """Simulate controllers like `follow_path`, with the code that `export_controller` writes.

    Args:
        machine: the machine that the controllers assume: a model, a mechanism, a path, or the name
            of a shipped machine.
        options: as for `follow_path`; controllers by name.
        progress: called with the completed and the total number of stages.

    Returns:
        The comparison of the controllers, as from `follow_path`.

    Raises:
        InputError: a name or a number is wrong, or a controller cannot be generated.
        PoseError: the machine cannot run the stroke.
        EngineError: no C compiler was found, or it fails.

    Examples:
        >>> import tauloop as tl
        >>> stroke = tl.StrokeOptions(end={"x": 0.02}, duration=0.1)
        >>> options = tl.ControlOptions(stroke=stroke, controller=("computed-torque",))
        >>> tl.follow_path_with_exported_code(tl.load("five_bar"), options).status.value
        'ok'
    """
    unknown = [name for name in options.laws if name not in LAWS]
    InputError.raise_if_any(
        Problem(
            where="controller",
            what=f"{name!r} cannot be generated as code",
            remedy=f"choose among {', '.join(LAWS)}",
        )
        for name in unknown
    )
    common = ControllerOptions(
        space=options.space, bandwidth=options.bandwidth, damping=options.damping
    )
    laws = tuple(GeneratedLaw.of(replace(common, controller=name)) for name in options.laws)
    return follow_path(machine, replace(options, controller=laws), progress=progress)
