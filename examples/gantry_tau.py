"""The whole way through: log a simulated Gantry-Tau on multisines, identify it, judge it on a second log.

    python examples/gantry_tau.py --out out/gantry_tau

The 5-dof machine of Lyzell and Hovland moves on multisines (their eq. 2). Its log has encoder
steps, force noise and drive friction. Identified are the 16 parameters of their eq. 5 with the
carts and the friction; the result is judged on a second motion. At the end stands which of the 16
parameters can be told at all, by joint model and measured forces.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tauloop import IdentificationOptions, Model, identify, load
from tauloop.common.result import write_json
from tauloop.display import identification_figure, identification_table, save_figure
from tauloop.identification import (
    Identification,
    PreparationOptions,
    RegressionData,
    TermOptions,
    Ties,
    base_parameters,
    dynamic_parameters,
)
from tauloop.logs import Sensors, measure, write_log
from tauloop.mechanism.model import Mechanism
from tauloop.motion import SampledMotion, random_multisine

MACHINE = "gantry_tau_5dof"
PAPER = (
    *("m_p", "mc_px", "mc_pz", "I_pyy"),
    *(
        f"{name}_{link}{axes}"
        for link in "slt"
        for name, axes in (("m", ""), ("I", "xx"), ("I", "yy"), ("I", "zz"))
    ),
)
FRICTION = ("cart_viscous", "cart_coulomb", "telescope_viscous", "telescope_coulomb")
RATE, DURATION = 200.0, 40.0  # Hz, s
CART_STROKE, TELESCOPE_STROKE = 0.09, 0.055  # m
SENSORS = Sensors(resolution=np.full(5, 1e-6), force_noise=np.array([4.0, 4.0, 4.0, 2.0, 2.0]))


def excitation(
    model: Model,
    rng: np.random.Generator,
    telescope_stroke: float = TELESCOPE_STROKE,
    duration: float = DURATION,
) -> SampledMotion:
    """A multisine of all actuators around the reference pose (Gantry-Tau paper, eq. 2)."""
    center = model.actuator_position(model.assembly.q)
    stroke = np.array([CART_STROKE] * 3 + [telescope_stroke] * 2)
    motion = random_multisine(center, stroke, rng, terms=5, lowest=0.15, highest=1.2)
    return motion.sample(np.arange(0.0, duration, 1.0 / RATE))


def write_measurement(model: Model, path: Path, rng: np.random.Generator, duration: float) -> Path:
    """Move the machine, measure it, write the log."""
    motion = excitation(model, rng, duration=duration)
    start = model.actuators.track(motion.position).q
    forces = model.actuators.inverse_dynamics(
        motion.position, motion.velocity, motion.acceleration, start=start
    )
    units = model.actuators.ports.position.units
    log = measure(
        motion.time,
        motion.position,
        forces.force,
        forces.actuator_names,
        units,
        model.output_ports("actuators")[1],
        SENSORS,
        rng,
    )
    return write_log(path, log)


def options(model: Model, validation: Path) -> IdentificationOptions:
    """Unknown are the 16 parameters, the carts' mass and the drives' friction; all else keeps the file's values."""
    unknown = (*PAPER, "cart_mass", *FRICTION)
    known = {
        name: model.mechanism.value(name)
        for name in dynamic_parameters(model)
        if name not in unknown
    }
    return IdentificationOptions(
        validation=validation,
        unknowns="file",
        terms=TermOptions(known=known),
        preparation=PreparationOptions(cutoff=10.0, order=4, trim=60, decimation=5),
    )


def paper_regression(
    model: Model, sets: list[float], measured: int, rng: np.random.Generator
) -> RegressionData:
    """Exact regressor of the 16 parameters; `sets` are offsets of fixed telescopic lengths, empty for moving ones."""
    motions = []
    for offset in sets or [0.0]:
        motion = excitation(model, rng, 0.0 if sets else TELESCOPE_STROKE)
        shift = np.array([0.0, 0.0, 0.0, offset, -0.6 * offset])
        motions.append(replace(motion, position=motion.position + shift))
    position, velocity, acceleration = (
        np.concatenate([getattr(motion, kind)[::20] for motion in motions])
        for kind in ("position", "velocity", "acceleration")
    )
    start = model.forward_kinematics(position).q
    regressor = model.actuators.regressor(position, velocity, acceleration, start=start)
    outputs, units = model.output_ports("actuators")
    T, offset = model.parameter_map(PAPER)
    return RegressionData(
        regressor=regressor,
        forces=regressor @ model.pi,
        parameters=tuple(p.name for p in model.parameters),
        parameter_units=tuple(p.unit for p in model.parameters),
        outputs=outputs,
        output_units=units,
        measured=np.arange(5) < measured,
        ties=Ties(
            matrix=T,
            offset=offset,
            parameters=PAPER,
            units=tuple(model.mechanism.parameters[name].unit for name in PAPER),
        ),
    )


def without_spin(mechanism: Mechanism) -> Mechanism:
    """The same machine with links that do not spin."""
    return replace(mechanism, rods=tuple(replace(rod, spin="none") for rod in mechanism.rods))


#: lengths, measured forces, and the number of identifiable parameters in shared notes of the
#: project: (no spin, spin).
CASES: tuple[tuple[str, list[float], int, tuple[int, int]], ...] = (
    ("fixed", [0.0], 3, (10, 13)),
    ("fixed", [0.0], 5, (12, 15)),
    ("four fixed sets", [-0.05, -0.02, 0.02, 0.05], 3, (13, 16)),
    ("four fixed sets", [-0.05, -0.02, 0.02, 0.05], 5, (13, 16)),
    ("moving", [], 3, (13, 16)),
    ("moving", [], 5, (13, 16)),
)


def identifiability(model: Model) -> list[dict[str, object]]:
    """Which of the 16 parameters forces can tell, by joint model, telescopic lengths and measured forces."""
    rows = []
    joint_models = (("no spin", Model(without_spin(model.mechanism))), ("universal", model))
    for lengths, sets, measured, expected in CASES:
        for k, (joint_model, variant) in enumerate(joint_models):
            data = paper_regression(variant, sets, measured, np.random.default_rng(11))
            stacked = (data.regressor @ data.ties.matrix)[:, data.kept].reshape(-1, len(PAPER))
            base = base_parameters(stacked, data.unknowns, data.unknown_units)
            rows.append(
                {
                    "lengths": lengths,
                    "measured": "3 carts" if measured == 3 else "all 5",
                    "links": joint_model,
                    "identifiable": base.rank,
                    "expected": expected[k],
                    "combinations": [
                        parameter.name for parameter in base.base if len(parameter.terms) > 1
                    ],
                    "lost": list(base.no_effect),
                }
            )
    return rows


def identifiability_table(rows: list[dict[str, object]]) -> Table:
    """The rows for the terminal."""
    table = Table(
        title="Which of the 16 parameters of eq. 5 can be identified",
        title_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for heading in (
        "lengths",
        "forces",
        "links",
        "rank",
        "notes say",
        "only in combination",
        "no effect",
    ):
        table.add_column(heading, justify="right" if heading in ("rank", "notes say") else "left")
    for row in rows:
        combinations, lost = row["combinations"], row["lost"]
        table.add_row(
            *(
                str(row[key])
                for key in ("lengths", "measured", "links", "identifiable", "expected")
            ),
            "; ".join(combinations) if isinstance(combinations, list) else "",
            ", ".join(lost) if isinstance(lost, list) else "",
        )
    return table


def main(
    out: Path = Path("out/gantry_tau"), seed: int = 1, duration: float = DURATION
) -> Identification:
    """Write the logs, identify, print the tables, write JSON and PNG."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    mechanism = load(MACHINE)
    model = Model(mechanism)
    rng = np.random.default_rng(seed)
    with console.status("moving and measuring the machine"):
        training = write_measurement(model, out / "training.csv", rng, duration)
        validation = write_measurement(model, out / "validation.csv", rng, duration)
    with console.status("identifying"):
        document = identify(model, training, options(model, validation))
    result = document.identification
    nominal = [mechanism.parameters[name].value for name in result.base.parameters]
    console.print(identification_table(result, reference=nominal))
    for problem in document.findings:
        console.print(str(problem), style="yellow")
    title = "Gantry-Tau, 5 dof: two multisines"
    figure = identification_figure(result, document.training, document.held_out, title=title)
    with console.status("asking which parameters can be told"):
        rows = identifiability(model)
    console.print(identifiability_table(rows))
    write_json(out / "identification.json", document.as_dict() | {"identifiability": rows})
    save_figure(figure, out / "identification.png")
    console.print(
        f"written: {out}/training.csv, validation.csv, identification.json, identification.png"
    )
    assert max(fit.rmse_percent for fit in result.held_out) < 3.0, (
        "the identified model must predict the second log"
    )
    return result


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/gantry_tau"), help="folder for logs, JSON and PNG"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of motions and noise")
    parser.add_argument("--duration", type=float, default=DURATION, help="length of each log, s")
    return parser.parse_args()


if __name__ == "__main__":
    main(**vars(arguments()))
