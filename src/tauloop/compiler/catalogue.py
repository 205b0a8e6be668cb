"""Catalogue of all programs of a machine, as objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING

from tauloop.common.errors import InputError
from tauloop.common.names.lazy import lazy_functions
from tauloop.compiler.expressions import MotionState, ProgramSpec
from tauloop.compiler.functions.motion import (
    diagnosis_program,
    embedding_program,
    forward_dynamics_program,
    inverse_dynamics_program,
    jacobian_program,
    kinematics_program,
    momentum_forces_program,
    momentum_program,
    outputs_program,
    regressor_program,
)
from tauloop.compiler.program import Program
from tauloop.equations.ports import (
    Entry,
    direction_name,
    directional_name,
    factor_of,
    jacobian_name,
    may_depend,
)
from tauloop.mechanism.suggestions import unknown_names

if TYPE_CHECKING:
    from tauloop.compiler.derivatives.derivatives import (
        forward_dynamics_derivatives_program,
        inverse_dynamics_derivatives_program,
        kinematics_derivatives_program,
    )
    from tauloop.compiler.derivatives.products import (
        forward_dynamics_products_program,
        inverse_dynamics_products_program,
    )
    from tauloop.compiler.functions.hybrid import hybrid_inverse_dynamics_program
    from tauloop.compiler.functions.measured import measured_motion_program
    from tauloop.compiler.functions.observer import momentum_observer_program
    from tauloop.compiler.functions.terms import (
        energies_program,
        tensions_program,
        terms_program,
        tool_program,
    )
else:
    (
        forward_dynamics_derivatives_program,
        inverse_dynamics_derivatives_program,
        kinematics_derivatives_program,
    ) = lazy_functions(
        "tauloop.compiler.derivatives.derivatives",
        "forward_dynamics_derivatives_program",
        "inverse_dynamics_derivatives_program",
        "kinematics_derivatives_program",
    )
    forward_dynamics_products_program, inverse_dynamics_products_program = lazy_functions(
        "tauloop.compiler.derivatives.products",
        "forward_dynamics_products_program",
        "inverse_dynamics_products_program",
    )
    (hybrid_inverse_dynamics_program,) = lazy_functions(
        "tauloop.compiler.functions.hybrid", "hybrid_inverse_dynamics_program"
    )
    (measured_motion_program,) = lazy_functions(
        "tauloop.compiler.functions.measured", "measured_motion_program"
    )
    (momentum_observer_program,) = lazy_functions(
        "tauloop.compiler.functions.observer", "momentum_observer_program"
    )
    energies_program, tensions_program, terms_program, tool_program = lazy_functions(
        "tauloop.compiler.functions.terms",
        "energies_program",
        "tensions_program",
        "terms_program",
        "tool_program",
    )

_STATE = ("position", "velocity")
_MOTION = ("position", "velocity", "acceleration")


#: Kinematics up to positions, up to velocities, and up to accelerations.
KINEMATICS = tuple(
    ProgramSpec(
        name=f"kinematics_{levels}",
        meaning=f"all coordinates{words} of the machine",
        build=partial(kinematics_program, levels=levels),
        inputs=_MOTION[: levels + 1],
        outputs=("q", "v", "a")[: levels + 1],
    )
    for levels, words in enumerate(("", " and velocities", ", velocities and accelerations"))
)
DIAGNOSIS = ProgramSpec(
    name="diagnosis",
    meaning="gaps of closed-form loops if a pose is out of reach",
    build=diagnosis_program,
    inputs=("position",),
    outputs=("extremes",),
)
FILE_OUTPUTS = ProgramSpec(
    name="outputs",
    meaning="outputs that the machine file defines",
    build=outputs_program,
    inputs=("position",),
    outputs=("outputs",),
)
EMBEDDING = ProgramSpec(
    name="embedding",
    meaning="velocities of all coordinates per unit of the given velocities",
    build=embedding_program,
    inputs=_STATE,
    outputs=("G",),
)
#: For the actuators' motion of machines with redundant actuation.
MEASURED_MOTION = ProgramSpec(
    name="measured_motion",
    meaning="motion of the leading actuators that fits the positions and speeds of all actuators "
    "best, and the matrix that distributes forces",
    build=measured_motion_program,
    inputs=(*_STATE, "measured", "measured_speed", "spread"),
    outputs=("x", "speed", "R", "share"),
)
#: Jacobians of the actuators' and of the platform's motion.
JACOBIANS = {
    of: ProgramSpec(
        name=f"jacobian_of_{of}",
        meaning=f"velocities of the {of} per unit of the given velocities",
        build=partial(jacobian_program, of=of),
        inputs=_STATE,
        outputs=("J",),
    )
    for of in Entry
}
INVERSE_DYNAMICS = ProgramSpec(
    name="inverse_dynamics",
    meaning="actuator forces that a motion needs",
    build=inverse_dynamics_program,
    inputs=_MOTION,
    outputs=("force", "closure_force", "tension"),
)
HYBRID_INVERSE_DYNAMICS = ProgramSpec(
    name="hybrid_inverse_dynamics",
    meaning="actuator forces, and accelerations of passive degrees of freedom",
    build=hybrid_inverse_dynamics_program,
    inputs=("position", "velocity", "actuator_acceleration"),
    outputs=("force", "passive_acceleration"),
)
FORWARD_DYNAMICS = ProgramSpec(
    name="forward_dynamics",
    meaning="accelerations due to actuator forces",
    build=forward_dynamics_program,
    inputs=("position", "velocity", "force"),
    outputs=("acceleration",),
)
_LOAD = ("wrench", "payload")
#: The same programs with a payload and a wrench at the tool.
LOADED_INVERSE_DYNAMICS = replace(
    INVERSE_DYNAMICS,
    name="loaded_inverse_dynamics",
    build=partial(inverse_dynamics_program, loaded=True),
    inputs=(*_MOTION, *_LOAD),
)
LOADED_FORWARD_DYNAMICS = replace(
    FORWARD_DYNAMICS,
    name="loaded_forward_dynamics",
    build=partial(forward_dynamics_program, loaded=True),
    inputs=("position", "velocity", "force", *_LOAD),
)
TERMS = ProgramSpec(
    name="terms",
    meaning="mass matrix, Coriolis, gravity and loss terms in the given velocities",
    build=terms_program,
    inputs=_STATE,
    outputs=("mass_matrix", "coriolis", "gravity", "losses"),
)
TOOL = ProgramSpec(
    name="tool",
    meaning="pose, twist and Jacobian of the tool",
    build=tool_program,
    inputs=_STATE,
    outputs=("jacobian", "place", "rotation", "twist"),
)
ENERGIES = ProgramSpec(
    name="energies",
    meaning="kinetic and potential energy",
    build=energies_program,
    inputs=_STATE,
    outputs=("kinetic", "potential"),
)
MOMENTUM = ProgramSpec(
    name="momentum",
    meaning="momenta of all velocities",
    build=momentum_program,
    inputs=_STATE,
    outputs=("momentum",),
)
MOMENTUM_FORCES = ProgramSpec(
    name="momentum_forces",
    meaning="actuator forces from the rate of the momenta, and the momenta of the next rate",
    build=momentum_forces_program,
    inputs=(*_STATE, "momentum_rate"),
    outputs=("force", "momentum"),
)
MOMENTUM_OBSERVER = ProgramSpec(
    name="momentum_observer",
    meaning="external force on the platform, from momenta sample by sample, and the momenta for "
    "the next sample",
    build=momentum_observer_program,
    inputs=(*_STATE, "force", "last_momentum", "last_external_force", "period", "bandwidth"),
    outputs=("external_force", "momentum"),
)
TENSIONS = ProgramSpec(
    name="tensions",
    meaning="cable tensions as functions of the actuator forces",
    build=tensions_program,
    inputs=_MOTION,
    outputs=("unforced", "pulls", "map", "needed"),
)
#: Regressors by the meaning of their rows.
REGRESSORS = MappingProxyType(
    {
        output: ProgramSpec(
            name=f"regressor_{output}",
            meaning="matrix Y with actuator forces = Y pi, pi the dynamic parameters",
            build=partial(regressor_program, output=output),
            inputs=_MOTION,
            outputs=("regressor",),
        )
        for output in ("actuators", "joints", "leading", "leading_joints")
    }
)


def _differentiated(
    spec: ProgramSpec, name: str, build: Callable[[MotionState], Program], outputs: tuple[str, ...]
) -> ProgramSpec:
    """Return the specification of a program with its values and their Jacobians by its inputs."""
    pairs = [
        (output, argument)
        for output in outputs
        for argument in spec.inputs
        if may_depend(output, argument)
    ]
    return ProgramSpec(
        name=f"{name}_derivatives",
        meaning=f"{spec.meaning}, and Jacobians",
        build=build,
        inputs=spec.inputs,
        outputs=(*outputs, *(jacobian_name(*pair) for pair in pairs)),
    )


_FORCES, _ACCELERATIONS = ("force", "closure_force"), ("acceleration",)
#: Functions with derivatives, by name: without and with loads at the tool.
DERIVATIVES = MappingProxyType(
    {
        "kinematics": (
            _differentiated(
                KINEMATICS[2], "kinematics", kinematics_derivatives_program, ("q", "v", "a")
            ),
        ),
        "inverse_dynamics": tuple(
            _differentiated(
                spec,
                spec.name,
                partial(inverse_dynamics_derivatives_program, loaded=bool(loaded)),
                _FORCES,
            )
            for loaded, spec in enumerate((INVERSE_DYNAMICS, LOADED_INVERSE_DYNAMICS))
        ),
        "forward_dynamics": tuple(
            _differentiated(
                spec,
                spec.name,
                partial(forward_dynamics_derivatives_program, loaded=bool(loaded)),
                _ACCELERATIONS,
            )
            for loaded, spec in enumerate((FORWARD_DYNAMICS, LOADED_FORWARD_DYNAMICS))
        ),
    }
)


def _products(
    spec: ProgramSpec, output: str, build: Callable[[MotionState], Program]
) -> ProgramSpec:
    """Return the specification of a program with products of derivatives (see `products`)."""
    slopes = (jacobian_name("slope", name) for name in spec.inputs)
    bends = (jacobian_name("bend", name) for name in spec.inputs)
    return ProgramSpec(
        name=f"{spec.name}_products",
        meaning=f"{spec.meaning}, and products of first and second derivatives",
        build=build,
        inputs=(*spec.inputs, *map(direction_name, spec.inputs), factor_of(output)),
        outputs=(output, directional_name(output), *slopes, *bends),
    )


#: Products of the derivatives of dynamics with directions and factors, by name of the function.
PRODUCTS = MappingProxyType(
    {
        INVERSE_DYNAMICS.name: _products(
            INVERSE_DYNAMICS, "force", inverse_dynamics_products_program
        ),
        FORWARD_DYNAMICS.name: _products(
            FORWARD_DYNAMICS, "acceleration", forward_dynamics_products_program
        ),
    }
)
#: Programs that can be exported as C and loaded as functions, by the names of these functions.
EXPORTABLE = MappingProxyType(
    {
        "inverse_dynamics": INVERSE_DYNAMICS,
        "forward_dynamics": FORWARD_DYNAMICS,
        "regressor": REGRESSORS["actuators"],
        "positions": KINEMATICS[0],
        "kinematics": KINEMATICS[2],
        "outputs": FILE_OUTPUTS,
        "momentum": MOMENTUM,
        "momentum_forces": MOMENTUM_FORCES,
        "momentum_observer": MOMENTUM_OBSERVER,
        **{specs[0].name: specs[0] for specs in DERIVATIVES.values()},
        **{spec.name: spec for spec in PRODUCTS.values()},
    }
)
#: All programs by name.
PROGRAMS = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            *KINEMATICS,
            DIAGNOSIS,
            FILE_OUTPUTS,
            EMBEDDING,
            MEASURED_MOTION,
            *JACOBIANS.values(),
            INVERSE_DYNAMICS,
            HYBRID_INVERSE_DYNAMICS,
            FORWARD_DYNAMICS,
            LOADED_INVERSE_DYNAMICS,
            LOADED_FORWARD_DYNAMICS,
            TERMS,
            TOOL,
            ENERGIES,
            MOMENTUM,
            MOMENTUM_FORCES,
            MOMENTUM_OBSERVER,
            TENSIONS,
            *chain.from_iterable(DERIVATIVES.values()),
            *PRODUCTS.values(),
            *REGRESSORS.values(),
        )
    }
)


def program_named(name: str) -> ProgramSpec:
    """Return the program with a name.

    Raises:
        InputError: no program has this name.
    """
    InputError.raise_if_any(unknown_names([name], PROGRAMS, "{!r} is unknown", "program"))
    return PROGRAMS[name]
