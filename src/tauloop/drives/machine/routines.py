"""Routines of a machine with drive lines and sampled controls: a system from sample to sample."""

from __future__ import annotations

import casadi as ca

from tauloop.compiler.catalogue import KINEMATICS
from tauloop.compiler.functions.rates import actuator_motion
from tauloop.drives.machine.system import MACHINE_INPUTS, MachineSystem
from tauloop.integrate.routine import Routine, RoutineCall, program_call, straight, unit_quaternions
from tauloop.integrate.system import HybridSystem


def sampled_machine(system: MachineSystem) -> HybridSystem:
    """Return the routines for rates, resets and held values of the machine and its lines."""
    plant, shape, lines = system.plant, system.plant.topology, system.lines
    ports = plant.platform.ports
    sizes = {key: array.shape[1] for key, array in plant.platform.runner.empty_inputs().items()}
    state = {"position": "y", "velocity": f"y + {ports.position.size}", "start": "start"}
    state["theta"] = f"p + {len(system.parameters)}"
    program, wanted = plant.platform.runner.program(KINEMATICS[1]), {"q": "q", "v": "v"}

    def loads(q: ca.SX, v: ca.SX) -> dict[str, ca.SX]:
        """Return position and speed of each actuator, as pairs."""
        return {"at": ca.vec(ca.horzcat(*actuator_motion(plant.assembly, q, v)).T)}

    load = (
        program_call("machine_pose", program, sizes, state, wanted, is_judged=False),
        straight("actuators", {"q": shape.n_q, "v": shape.n_v}, loads),
    )
    own = {"q": shape.n_q, "v": shape.n_v, "at": 2 * len(lines), "u": len(lines)}
    rates, resets, holds = [], [], []
    for i, (line, at_y, at_s, z) in enumerate(system.places()):
        inputs_place, y, s = f"in + {len(MACHINE_INPUTS) * i}", f"y + {at_y}", f"s + {at_s}"

        def call(
            function: ca.Function, held: str, *outputs: str, without: ca.Function | None = None
        ) -> RoutineCall:
            inputs = (y, f"at + {2 * i}", s, held, inputs_place, "p")  # noqa: B023 (it is called at once)
            brief = None if without is None else (without, (outputs[0], *outputs[2:]))
            return RoutineCall(function=function, inputs=inputs, outputs=outputs, brief=brief)

        guards = s.replace("s", "guards")
        rates.append(
            call(
                line.rate,
                f"held + {z}",
                y.replace("y", "rate"),
                guards,
                f"u + {i}",
                without=line.slope,
            )
        )
        resets.append(call(line.reset, f"held + {z}", y))
        holds.append(call(line.hold, f"z + {z}", f"z + {z}"))
    moved = {"rate": "rate", "all_q": "start"}
    forward = program_call(
        "machine_forward", system.rate.program, sizes, state | {"force": "u"}, moved
    )
    return HybridSystem(
        states=system.size,
        held=sum(line.held_size for line in lines),
        constants=len(system.parameters) + len(plant.free),
        inputs=len(MACHINE_INPUTS) * len(lines),
        coordinates=shape.n_q,
        velocities=shape.n_v,
        modes=tuple(value for line in lines for value in line.mode_starts),
        rate=Routine(
            calls=(*load, *rates, forward), own=own, known=(("start", shape.n_q), ("v", shape.n_v))
        ),
        reset=Routine(calls=(*load, *resets), own=own),
        sample=Routine(calls=(*load, *holds), own=own),
        back=unit_quaternions(system.rate.quaternions, system.size),
    )
