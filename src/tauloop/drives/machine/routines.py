"""Routines of a machine with drive lines and sampled controls: a system from sample to sample."""

from __future__ import annotations

import casadi as ca

from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.functions.rates import actuator_motion
from tauloop.drives.machine.system import MACHINE_INPUTS, MachineSystem
from tauloop.integrate.routine import Routine, RoutineCall, program_call, straight, unit_quaternions
from tauloop.integrate.system import HybridSystem


def sampled_machine(system: MachineSystem) -> HybridSystem:
    """Return the routines of the machine and its lines: derivatives, resets, and held values."""
    plant = system.plant
    topology = plant.topology
    lines = system.lines
    ports = plant.platform.ports
    sizes = {key: array.shape[1] for key, array in plant.platform.runner.empty_inputs().items()}
    state = {"position": "y", "velocity": f"y + {ports.position.size}", "start": "start"}
    state["theta"] = f"p + {len(system.parameters)}"
    program = plant.platform.runner.program(KINEMATICS[1])
    pose_outputs = {"q": "q", "v": "v"}

    def loads(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        """Return position and speed of each actuator, as pairs."""
        return {"at": ca.vec(ca.horzcat(*actuator_motion(plant.assembly, q, v)).T)}

    load = (
        program_call("machine_pose", program, sizes, state, pose_outputs, is_judged=False),
        straight("actuators", {"q": topology.n_q, "v": topology.n_v}, loads),
    )
    own = {"q": topology.n_q, "v": topology.n_v, "at": 2 * len(lines), "u": len(lines)}
    rates, resets, holds = [], [], []
    for i, (line, state_offset, mode_offset, z) in enumerate(system.line_offsets()):
        # C expressions of the addresses of the line's inputs, states and modes
        inputs_address = f"in + {len(MACHINE_INPUTS) * i}"
        y = f"y + {state_offset}"
        s = f"s + {mode_offset}"

        def call(
            function: ca.Function, held: str, *outputs: str, without: ca.Function | None = None
        ) -> RoutineCall:
            inputs = (y, f"at + {2 * i}", s, held, inputs_address, "p")  # noqa: B023 (called at once)
            brief = None if without is None else (without, (outputs[0], *outputs[2:]))
            return RoutineCall(function=function, inputs=inputs, outputs=outputs, brief=brief)

        rates.append(
            call(
                line.rate,
                f"held + {z}",
                f"rate + {state_offset}",
                f"guards + {mode_offset}",
                f"u + {i}",
                without=line.rate_without_guards,
            )
        )
        resets.append(call(line.reset, f"held + {z}", y))
        holds.append(call(line.hold, f"z + {z}", f"z + {z}"))
    forward = program_call(
        "machine_forward",
        system.rate.program,
        sizes,
        state | {"force": "u"},
        {"rate": "rate", "all_q": "start"},
    )
    return HybridSystem(
        states=system.size,
        held=sum(line.held_size for line in lines),
        constants=len(system.parameters) + len(plant.free),
        inputs=len(MACHINE_INPUTS) * len(lines),
        coordinates=topology.n_q,
        velocities=topology.n_v,
        modes=tuple(value for line in lines for value in line.mode_starts),
        rate=Routine(
            calls=(*load, *rates, forward),
            own=own,
            known=(("start", topology.n_q), ("v", topology.n_v)),
        ),
        reset=Routine(calls=(*load, *resets), own=own),
        sample=Routine(calls=(*load, *holds), own=own),
        back=unit_quaternions(system.rate.quaternions, system.size),
    )
