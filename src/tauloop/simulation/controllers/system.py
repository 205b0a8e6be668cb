"""A machine under sampled control as a hybrid system: its equations, and the routine of a sample."""

from __future__ import annotations

from collections.abc import Mapping

import casadi as ca

from tauloop.compiler.catalogue import (
    EMBEDDING,
    FORWARD_DYNAMICS,
    INVERSE_DYNAMICS,
    KINEMATICS,
    LOADED_FORWARD_DYNAMICS,
    MEASURED_MOTION,
)
from tauloop.compiler.expressions import ProgramSpec
from tauloop.compiler.functions.rates import actuator_motion, coordinate_rate
from tauloop.compiler.functions.tool import PAYLOAD, WRENCH
from tauloop.integrate.routine import (
    Layout,
    Routine,
    RoutineCall,
    own_call,
    program_call,
    straight,
    unit_quaternions,
)
from tauloop.integrate.system import HybridSystem
from tauloop.model import Model
from tauloop.model.motion import Motion
from tauloop.simulation.controllers.laws import Compensation, Controller


class ControlLayouts:
    """Layouts of a sample's inputs, of the held values, and of the constants.

    Attributes:
        inputs: time, reference and feed-forward forces; also wrench and payload at the tool if they
            act.
        held: forces, start of the controller's Newton method, the last three measured poses, and
            the last measured positions.
        constants: gains, limits, encoder resolution and whether it is used, period, whether speeds
            are differences, and free parameters; for redundant actuation also the weights of forces
            and the noise of measurements.
    """

    def __init__(
        self, plant: Model, model: Model, controller: Controller, *, loaded: bool = False
    ) -> None:
        """Define the layouts; `loaded` adds wrench and payload at the tool."""
        n_q, n_u = plant.topology.n_q, len(plant.mechanism.actuators)
        n_v = plant.platform.ports.velocity.size
        n_position, n = (n_q, n_v) if controller.space == "platform" else (n_u, n_u)
        inputs = {
            "time": 1,
            "position": n_position,
            "velocity": n,
            "acceleration": n,
            "forward": n_u,
        }
        if loaded:
            inputs |= {"wrench": WRENCH, "payload": PAYLOAD}
        self.inputs = Layout("in", inputs)
        self.held = Layout("z", {"force": n_u, "estimate": n_q, "past": 3 * n_q, "last": n_u})
        n_redundant = n_u if model.assembly.is_redundant else 0
        self.constants = Layout(
            "p",
            {
                "proportional": n,
                "derivative": n,
                "limit": n_u,
                "resolution": n_u,
                "counts": 1,
                "period": 1,
                "differences": 1,
                "plant": len(plant.free),
                "model": len(model.free),
                "weight": n_redundant,
                "spread": n_redundant,
            },
        )


def control_system(
    plant: Model, model: Model, controller: Controller, *, loaded: bool = False
) -> HybridSystem:
    """Return the system of a machine and a controller; the controller's gains are constants.

    Args:
        plant: the simulated machine.
        model: the machine that the controller assumes, of the same structure.
        controller: the control law.
        loaded: whether a wrench and a payload act at the tool of the plant, constant from sample to
            sample.
    """
    parts = ControlLayouts(plant, model, controller, loaded=loaded)
    entry, shape = plant.platform.ports, plant.topology
    n_p, n_q, n_v = entry.position.size, shape.n_q, shape.n_v
    state = {
        "position": "y",
        "velocity": f"y + {n_p}",
        "start": "start",
        "theta": parts.constants.place("plant"),
    }
    acting = {name: parts.inputs.place(name) for name in ("wrench", "payload") if loaded}
    rate = Routine(
        calls=(
            _program(
                "plant_forward",
                plant.platform,
                LOADED_FORWARD_DYNAMICS if loaded else FORWARD_DYNAMICS,
                state | {"force": parts.held.place("force", "held")} | acting,
                {"acceleration": f"rate + {n_p}", "q": "q", "v": "v"},
            ),
            straight(
                "turning",
                {"q": n_q, "v": n_v},
                lambda q, v: {"rate": coordinate_rate(shape, q, v)[list(entry.q)], "start": q},
            ),
        ),
        own={"q": n_q, "v": n_v},
        known=(("start", n_q), ("v", n_v)),
    )
    n_u = len(plant.mechanism.actuators)
    sizes = {
        "q": n_q,
        "full": n_v,
        "measured": 2 * n_u,
        "x": max(n_p, n_u),
        "push": max(entry.velocity.size, n_u),
        "G": n_v * n_u,
    }
    n = entry.velocity.size
    sizes |= {"speed": n, "zero": n, "model_force": n_u, "led": 2 * n}
    sizes |= dict.fromkeys(("R", "share"), n * n_u * model.assembly.is_redundant)
    sample = Routine(
        calls=(
            _program("plant_pose", plant.platform, KINEMATICS[1], state, {"q": "q", "v": "full"}),
            *_measured(plant, parts),
            *_law(model, controller, parts),
            own_call(
                (parts.inputs.place("time"), 1),
                ("measured", 2 * n_u),
                (parts.held.place("force"), n_u),
            ),
            _limited(parts, n_u),
        ),
        own=sizes,
    )
    states = n_p + entry.velocity.size
    return HybridSystem(
        states=states,
        held=n_u,
        kept=parts.held.size - n_u,
        constants=parts.constants.size,
        inputs=parts.inputs.size,
        coordinates=n_q,
        velocities=n_v,
        rate=rate,
        sample=sample,
        back=unit_quaternions(entry.whole_quaternions(shape), states),
    )


def _program(
    name: str,
    motion: Motion,
    program: ProgramSpec,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
) -> RoutineCall:
    """Return the call of a program from the catalogue."""
    sizes = {key: array.shape[1] for key, array in motion.runner.empty_inputs().items()}
    return program_call(name, motion.runner.program(program), sizes, inputs, outputs)


def _measured(plant: Model, parts: ControlLayouts) -> list[RoutineCall]:
    """Return the calls that read the encoders and set the start of Newton's method.

    The start is extrapolated from the last four poses by a cubic polynomial.
    """
    shape = plant.topology
    n_q, n_u = shape.n_q, len(plant.mechanism.actuators)
    last, constants = parts.held.place("last"), parts.constants.place

    def read(q: ca.SX, full: ca.SX) -> dict[str, ca.SX]:
        return {"measured": ca.vertcat(*actuator_motion(plant.assembly, q, full))}

    def quantized(position: ca.SX, step: ca.SX) -> dict[str, ca.SX]:
        return {"measured": ca.if_else(step > 0, step * ca.floor(position / step + 0.5), position)}

    def differences(position: ca.SX, before: ca.SX, time: ca.SX, period: ca.SX) -> dict[str, ca.SX]:
        speed = ca.if_else(time > 0, (position - before) / period, 0)
        return {f"measured + {n_u}": speed, last: position}

    def extrapolated(past: ca.SX) -> dict[str, ca.SX]:
        a, b, c, d = ca.vertsplit(past, n_q)
        return {parts.held.place("estimate"): ca.vertcat(4 * a - 6 * b + 4 * c - d, a, b, c)}

    return [
        straight("measured_motion", {"q": n_q, "full": shape.n_v}, read),
        straight(
            "counted",
            {"measured": n_u, constants("resolution"): n_u},
            quantized,
            when=constants("counts"),
        ),
        straight(
            "differences",
            {"measured": n_u, last: n_u, parts.inputs.place("time"): 1, constants("period"): 1},
            differences,
            when=constants("differences"),
        ),
        straight("ahead", {parts.held.place("estimate"): 4 * n_q}, extrapolated),
    ]


def _fitted(model: Model, parts: ControlLayouts) -> list[RoutineCall]:
    """Return the calls that fit the leading actuators' motion to all measured actuators.

    They also compute the actuator Jacobian R, and the matrix "share" that distributes forces among
    redundant actuators.
    """
    leading = list(model.assembly.leading)
    n_u, constants = len(model.mechanism.actuators), parts.constants.place
    m = len(leading)

    def leading_motion(measured: ca.SX) -> dict[str, ca.SX]:
        return {"led": ca.vertcat(measured[leading], measured[n_u:][leading])}

    inputs = {
        "position": "led",
        "velocity": f"led + {m}",
        "measured": "measured",
        "measured_speed": f"measured + {n_u}",
    }
    inputs |= {"start": parts.held.place("estimate"), "theta": constants("model")}
    inputs |= {name: constants(name) for name in ("weight", "spread")}
    outputs = {
        "x": "led",
        "speed": f"led + {m}",
        "R": "R",
        "share": "share",
        "q": parts.held.place("estimate"),
    }
    return [
        straight("leading_motion", {"measured": 2 * n_u}, leading_motion),
        _program("model_fit", model.actuators, MEASURED_MOTION, inputs, outputs),
    ]


def _law(model: Model, controller: Controller, parts: ControlLayouts) -> list[RoutineCall]:
    """Return the calls for the forces of a sample, without feed-forward and limits."""
    entry, n_u = model.platform.ports, len(model.mechanism.actuators)
    m, leading = entry.velocity.size, list(model.assembly.leading)
    shares = model.assembly.is_redundant
    n_q, n_v, estimate = model.topology.n_q, model.topology.n_v, parts.held.place("estimate")
    force, theta = parts.held.place("force"), parts.constants.place("model")
    in_platform = controller.space == "platform"
    accelerates = controller.compensation is Compensation.ACCELERATION
    led = "led" if shares else "measured"
    measured = {"position": led, "velocity": f"{led} + {m}", "start": estimate, "theta": theta}
    calls = _fitted(model, parts) if shares else []
    if in_platform:
        # Laws that do not request accelerations use the Jacobian of velocities; its transpose maps
        # forces to the actuators.
        program, wanted = EMBEDDING, {"q": estimate, "G": "G"}
        if accelerates:
            program, wanted = KINEMATICS[1], {"q": estimate, "v": "full"}
        calls.append(_program("model_pose", model.actuators, program, measured, wanted))

    # Each redundant actuator follows its own reference; the resulting forces are then distributed.
    alone = shares and not (in_platform or accelerates)
    seen_from = "measured" if alone else led

    def push(
        q: ca.SX, motion: ca.SX, seen: ca.SX, R: ca.SX, C: ca.SX, inputs: ca.SX, p: ca.SX
    ) -> dict[str, ca.SX]:
        wanted, constants = parts.inputs.parts(inputs), parts.constants.parts(p)
        if not (in_platform or alone):
            wanted = {
                name: value[leading]
                for name, value in wanted.items()
                if name not in ("time", "forward")
            }
            constants = {name: constants[name][leading] for name in ("proportional", "derivative")}
        half, columns = seen.numel() // 2, list(entry.v)
        x, speed = seen[:half], seen[half:]
        error, G = (
            wanted["position"] - x if not in_platform else pose_error(model, wanted["position"], q),
            ca.SX(1),
        )
        if in_platform:
            x = q[list(entry.q)]
            G = ca.SX(1) if accelerates else ca.reshape(motion, n_v, m)[columns, :]
            speed = motion[columns] if accelerates else G @ speed
        pushed = constants["proportional"] * error + constants["derivative"] * (
            wanted["velocity"] - speed
        )
        pushed = pushed + wanted["acceleration"] if accelerates else G.T @ pushed
        if shares and not accelerates:
            pushed = ca.reshape(C, n_u, m) @ (ca.reshape(R, n_u, m).T @ pushed if alone else pushed)
        asked = {"zero": ca.SX(m, 1), "push": pushed} | ({} if alone else {"x": x, "speed": speed})
        return asked if controller.compensation is not Compensation.NONE else {force: pushed}

    reads = {estimate: n_q, **({"full": n_v} if accelerates else {"G": n_v * m})}
    reads |= {
        seen_from: 2 * (n_u if alone else m),
        "R": n_u * m * shares,
        "share": n_u * m * shares,
    }
    calls.append(
        straight("errors", reads | {"in": parts.inputs.size, "p": parts.constants.size}, push)
    )
    if controller.compensation is Compensation.NONE:
        return calls
    motion = model.platform if in_platform else model.actuators
    if alone:
        calls.append(straight("seen", {"led": 2 * m}, lambda seen: {"x": seen[:m]}))
    arguments = {"position": "x", "start": estimate, "theta": theta}
    arguments |= {"weight": parts.constants.place("weight")} if shares else {}
    arguments |= {
        "velocity": "speed" if accelerates else "zero",
        "acceleration": "push" if accelerates else "zero",
    }
    made = {"force": force if accelerates else "model_force", "q": estimate}
    calls.append(_program("model_inverse", motion, INVERSE_DYNAMICS, arguments, made))
    if not accelerates:
        calls.append(
            straight("pushed", {"push": n_u, "model_force": n_u}, lambda a, b: {force: a + b})
        )
    return calls


def _limited(parts: ControlLayouts, n_u: int) -> RoutineCall:
    """Return the call that adds feed-forward forces and applies the limits. It preserves NaN."""

    def limited(force: ca.SX, inputs: ca.SX, p: ca.SX) -> dict[str, ca.SX]:
        u, most = force + parts.inputs.parts(inputs)["forward"], parts.constants.parts(p)["limit"]
        return {
            parts.held.place("force"): ca.if_else(u > most, most, ca.if_else(u < -most, -most, u))
        }

    return straight(
        "limited",
        {parts.held.place("force"): n_u, "in": parts.inputs.size, "p": parts.constants.size},
        limited,
    )


def pose_error(model: Model, reference: ca.SX, measured: ca.SX) -> ca.SX:
    """Return the error of a platform pose, with one entry per platform velocity (n,).

    Rotation errors are twice the vector part of q_ref q*. If the platform has only some rotational
    degrees of freedom, only their components are used. To first order, the loops determine the
    other components, as for velocities.

    Args:
        model: the machine.
        reference, measured: all coordinates of the reference and of the measurement (n_q,).
    """
    topology = model.topology
    errors = {iv: reference[iq] - measured[iq] for iv, iq in enumerate(topology.q_of_v) if iq >= 0}
    for q0, v0 in topology.quaternions:
        # reference quaternion (a0, u) and measured quaternion (b0, w)
        a0, u1, u2, u3 = ca.vertsplit(reference[q0 : q0 + 4])
        b0, w1, w2, w3 = ca.vertsplit(measured[q0 : q0 + 4])
        u, w = ca.vertcat(u1, u2, u3), ca.vertcat(w1, w2, w3)
        # q and -q are the same rotation: take the shorter one
        factor = ca.if_else(a0 * b0 + u1 * w1 + u2 * w2 + u3 * w3 >= 0, 2, -2)
        vector_part = b0 * u - a0 * w - ca.cross(u, w)
        errors |= {v0 + k: factor * vector_part[k] for k in range(3)}
    return ca.vertcat(*(errors[iv] for iv in model.platform.ports.v))
