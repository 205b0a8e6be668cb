"""Search of the plant behind the paper's tables, with all structures of the family from 20 starts.

    python -m tauloop_papers.dual_motor.search out/dual_motor.json
    python -m tauloop_papers.dual_motor.search out/dual_motor.json --part stages
    python -m tauloop_papers.dual_motor.search out/dual_motor.json --part store --line
    dual_motor_inferred.yaml

The first command takes up to 8 core-hours. Results are stored in the file immediately; after Ctrl-C
or a kill, the same command continues. The second command is a part of it and takes a few minutes:
from a plant that fulfils Table 1, it fits Table 1 alone, then the switching study with that plant,
then both, then both with play. The last plant is the shipped one. The third command writes the
results for `tauloop paper reproduce`, all fits in ``searched.json`` next to them, from which
another computer can continue, and the plant into the shipped drive line.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tauloop.common.errors import InputError
from tauloop.common.result import write_json
from tauloop.drives import (
    Axis,
    Observation,
    PlantFit,
    PlantUnknown,
    assess_plant,
    search_plant,
    simulate_axis,
)
from tauloop_papers.dual_motor.family import (
    EARLIER,
    GAINS,
    RIGID,
    RUNS,
    STEPPING,
    STRUCTURES,
    TABLE_1_PLANT,
    UNKNOWNS,
    Structure,
)
from tauloop_papers.dual_motor.stabilised import Chebyshev

STARTS = 20
#: The structure of the stages; unknowns of the second stage, without effect on Table 1; and its
#: generations.
STAGED = "free gains in the switching study"
SWITCHING = (*GAINS, "feed_forward_share")
STAGE_GENERATIONS = 10
#: The stage with the shipped plant.
WITH_PLAY = "then with play"
#: Its cart's share of the mass, and the play of each rack, m. All friction is at the motors:
#: with friction, the cart would come to rest inside the play, also with one motor.
CART_MASS_SHARE, GAP = 0.5, 0.0005
#: For this stage: factor of the bars of Table 1's costs, so that none is lost for another row;
#: increase of K_p at which the costs must be equal, because a rise time jumps where the first
#: oscillation just reaches 90 % of the step; and the maximum number of steps.
COST_SHARE, HIGHER_GAIN, POLISH_STAGE = 0.5, 0.002, 20
#: Core-hours after which no new fit begins.
BUDGET = 8.0
#: Population and generations of the global search of one start, on rows that are not near others;
#: and maximum numbers of steps of the local search on all rows. With 50 generations and 40 steps,
#: four fifths of the time went into the generations, without better results.
POPULATION, GENERATIONS, POLISH, POLISH_PLAY = 30, 20, 60, 20
#: Integrator of the global searches: errors of a loss of 60 are about 1, in half the time of
#: `STEPPING`.
COARSE = Chebyshev(rtol=1e-5, atol=1e-7, stages=5, max_steps=STEPPING.max_steps)
#: Integrator of fits with play: contacts damp light motors at about 20 000/s. Errors of a loss of
#: 100 are within 0.01.
CONTACTS = Chebyshev(rtol=1e-7, atol=1e-9, stages=16, max_steps=STEPPING.max_steps)
#: Values of plants that do not define others.
ASSUMED = {"stiction": 0.01, "torque_limit": 200.0, "speed_gain": 1.0, "pinion_radius": 0.05}
#: Number of a structure's best starts that are continued, and of fits that begin at the best plants
#: of other structures.
AGAIN = 2
#: Initial play of structures with play, m.
GAPS = (0.0002, 0.0005, 0.001, 0.002)
DISTINCT_ROWS = (
    "nominal gains",
    "pattern search",
    "SQP",
    "(0.5, ",
    "(0.25, ",
    "(0.67, ",
    "(0.55, ",
    "(1, 0.01)",
    "(0.98, ",
    "(0.62, 0.44)",
)
#: Maximum numbers of steps of fits with a value left out, and of the best fits before.
POLISH_REST, POLISH_BEST = 12, 100
RADIUS = 0.05
#: Smallest initial mass of cart and motors at the rack with play, kg: with smaller masses the
#: damping of the contacts (2000 N s/m) leads to fast motion, for which ten seconds take more steps
#: than `STEPPING` allows.
LIGHTEST = 0.2
#: Name of the fit without an omitted value, for comparison.
NOTHING = "nothing"
#: Between two moves a motor sticks until its integral is large enough (hunting). Smallest
#: oscillation of the cart in a limit cycle, m; largest one at rest, m; and duration of the run, s,
#: of which the last quarter counts.
CYCLE, STILL, LASTING = 1e-4, 1e-6, 600.0
#: Integrator of these runs.
LONG = replace(CONTACTS, max_steps=1_000_000)


class Kept:
    """Results in a file, which is complete after every fit."""

    def __init__(self, path: Path) -> None:
        """Read existing results."""
        self.path = path
        self.data: dict[str, Any] = {
            "core_hours": 0.0,
            "starts": {},
            "again": {},
            "left_out": {},
            "stages": {},
        }
        if path.exists():
            self.data |= json.loads(path.read_text(encoding="utf-8"))
        self._since = time.process_time()

    def keep(self, part: str, name: str, entry: Mapping[str, Any]) -> None:
        """Store one more fit."""
        now = time.process_time()
        self.data["core_hours"] += (now - self._since) / 3600
        self._since = now
        self.data[part][name] = entry
        write_json(self.path, self.data)
        typer.echo(
            f"{self.data['core_hours']:6.3f} core-hours, {part}, {name}: loss {entry['loss']:.4g}, {entry['met']} met"
        )

    def lacks(self, part: str, name: str) -> bool:
        """Return whether a fit is missing and the budget allows it."""
        return name not in self.data[part] and self.data["core_hours"] < BUDGET


def main(words: Sequence[str] | None = None) -> None:
    """Search with the arguments of a command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="keeps what is done")
    parser.add_argument(
        "--structures", type=int, default=len(STRUCTURES), help="number of structures of the family"
    )
    parser.add_argument("--starts", type=int, default=STARTS, help="of each")
    parser.add_argument(
        "--part",
        choices=("stages", "starts", "again", "rest", "store"),
        help="one of five parts; all except `store` by default",
    )
    parser.add_argument(
        "--line", type=Path, help="for `store`: a drive line file for the plant's values"
    )
    arguments = parser.parse_args(words)
    kept = Kept(arguments.file)
    chosen = STRUCTURES[: arguments.structures]
    try:
        if arguments.part in (None, "stages"):
            _stages(kept)
        if arguments.part in (None, "starts"):
            _starts(kept, chosen, arguments.starts)
        if arguments.part in (None, "again"):
            _again(kept, chosen)
        if arguments.part in (None, "rest"):
            _left_out(kept)
    except KeyboardInterrupt:
        typer.echo(f"interrupted; the same command continues from {arguments.file}")
    if arguments.part == "store":
        results = stored(kept.data)
        write_json(Path(__file__).parent / "found.json", results)
        begun = {name: kept.data[name] for name in ("core_hours", "stages", "starts", "again")}
        write_json(Path(__file__).parent / "searched.json", begun)
        if arguments.line:
            write_line(results["best"], arguments.line)


def _stages(kept: Kept) -> None:
    """Fit Table 1 alone, then the switching study with that plant, then all rows, then with play.

    Times and costs of Table 1 depend on few unknowns. A global search of all unknowns at once
    trades them against the switching study, and does not reach these plants.
    """
    item = next(item for item in STRUCTURES if item.name == STAGED)
    axis = Axis(item.searched, runs=RUNS)
    table_1 = [row for row in item.observations if row.motors == "preloaded"]
    switching = [row for row in item.observations if row.motors != "preloaded"]
    first = [unknown.name for unknown in item.unknowns if unknown.name not in SWITCHING]
    everything = [unknown.name for unknown in item.unknowns]
    stages = (
        ("Table 1 alone", first, table_1, 0),
        ("then the switching study", SWITCHING, switching, STAGE_GENERATIONS),
        ("then all rows", everything, item.observations, 0),
    )
    values: dict[str, float] = dict(TABLE_1_PLANT)
    for name, names, rows, generations in stages:
        if kept.lacks("stages", name):
            unknowns = [UNKNOWNS[unknown] for unknown in names]
            known = {
                **item.fixed,
                **{unknown: values[unknown] for unknown in everything if unknown not in names},
            }

            def shares(
                plant: Mapping[str, float], unknowns: Sequence[PlantUnknown] = unknowns
            ) -> np.ndarray:
                return np.clip(
                    [unknown.share(plant[unknown.name]) for unknown in unknowns], 0.0, 1.0
                )

            fit = search_plant(
                axis,
                unknowns,
                rows,
                seed=0,
                generations=generations,
                population=POPULATION,
                polish=POLISH,
                start=shares(values),
                integrator=STEPPING,
                known=known,
                exact=True,
            )
            # a settling time can jump by rounding of a plant: the better one of both results as it
            # is stored
            ends = [
                values,
                {**values, **{key: float(f"{value:.8g}") for key, value in fit.values.items()}},
            ]
            losses = [
                assess_plant(
                    axis, unknowns, rows, shares(plant), integrator=STEPPING, known=known
                ).loss
                for plant in ends
            ]
            plant = assessed(axis, item, item.held | ends[int(np.argmin(losses))], RIGID)
            own = [float(f"{row[3]:.6g}") for row in plant.rows]
            kept.keep("stages", name, _entry(plant, item) | {"rows": own})
        if name not in kept.data["stages"]:
            return
        values = kept.data["stages"][name]["values"]
    if kept.lacks("stages", WITH_PLAY):
        with_play = _fitted_with_play(item, item.held | values)
        fit = assessed(Axis(item.line, runs=RUNS), item, with_play)
        left = swings(Axis(item.line, runs=RUNS), with_play, both=True)
        if not _shows(left):
            raise InputError.of(
                WITH_PLAY,
                f"no limit cycle as in Figure 8: {left}",
                "try another split, or more play",
            )
        own = [float(f"{row[3]:.6g}") for row in fit.rows]
        kept.keep(
            "stages",
            WITH_PLAY,
            _entry(fit, item) | {"values": with_play, "swings": left, "rows": own},
        )


def _fitted_with_play(item: Structure, rigid: Mapping[str, float]) -> dict[str, float]:
    """Return the plant with play that is nearest to all rows, from one with rigid racks."""
    begun = _split(rigid, CART_MASS_SHARE, 0.0, "motors") | {"gap1": GAP, "gap2": GAP}
    unknowns, known = _around(item, begun, more=("motor_inertia",))
    unknowns = [unknown for unknown in unknowns if unknown.name != "cart_mass"]
    rows = []
    for row in item.observations:
        if "cost" in row.measured and row.motors == "preloaded":
            narrow = replace(row, tolerances={"cost": COST_SHARE * row.tolerances["cost"]})
            gain = float(row.parameters["kp"]) * (1.0 + HIGHER_GAIN)
            higher = replace(
                narrow, name=f"{row.name}, higher gain", parameters={**row.parameters, "kp": gain}
            )
            rows += [narrow, higher]
        else:
            rows.append(row)
    fit = search_plant(
        Axis(item.line, runs=RUNS),
        unknowns,
        rows,
        seed=0,
        generations=0,
        polish=POLISH_STAGE,
        start=np.array([unknown.share(begun[unknown.name]) for unknown in unknowns]),
        integrator=CONTACTS,
        known=known | {"cart_mass": begun["cart_mass"]},
        exact=True,
    )
    return {name: float(f"{value:.8g}") for name, value in (begun | dict(fit.values)).items()}


def _starts(kept: Kept, structures: Sequence[Structure], count: int) -> None:
    """Compute global, then local fits, in order of the starts of all structures."""
    axes: dict[str, Axis] = {}
    for seed in range(count):
        for item in structures:
            if kept.lacks("starts", f"{item.name}, start {seed}"):
                if item.name not in axes:
                    axes[item.name] = Axis(item.searched, runs=RUNS)
                axis = axes[item.name]
                steps = POLISH_PLAY if item.after else POLISH
                fit = _local(axis, item, _global(kept, axis, item, seed), steps)
                kept.keep("starts", f"{item.name}, start {seed}", _entry(fit, item))


def _global(kept: Kept, axis: Axis, item: Structure, seed: int) -> Mapping[str, float]:
    """Return the start of a local fit: from a global fit of few rows, or with rigid racks."""
    if item.after:
        rigid = kept.data["starts"][f"{item.after}, start {seed}"]["values"]
        return begun_with_play(item.held | rigid, GAPS[seed % len(GAPS)])
    first = []
    for row in item.observations:
        is_distinct = any(name in row.name for name in DISTINCT_ROWS)
        first.append(replace(row, held_out=not is_distinct))
    begun = None
    if seed == 0:
        begun = _shares(item, EARLIER | ASSUMED)
    fit = search_plant(
        axis,
        item.unknowns,
        first,
        seed=seed,
        generations=GENERATIONS,
        population=POPULATION,
        polish=1,
        start=begun,
        integrator=COARSE,
        known=item.fixed,
    )
    return fit.values


def begun_with_play(rigid: Mapping[str, float], gap: float) -> dict[str, float]:
    """Return the start of a search with play: half of mass and friction in the motors."""
    parts = _split(rigid, 0.5, 0.5, "cart")
    least = {"cart_mass": LIGHTEST, "motor_inertia": LIGHTEST * RADIUS**2}
    heavy = {name: max(value, parts[name]) for name, value in least.items()}
    return parts | heavy | {"gap1": gap, "gap2": gap, "motor_coulomb": 0.01}


def _shares(item: Structure, values: Mapping[str, float]) -> np.ndarray:
    """Return positions in the ranges."""
    return np.clip([unknown.share(values[unknown.name]) for unknown in item.unknowns], 0.0, 1.0)


def _local(
    axis: Axis,
    item: Structure,
    values: Mapping[str, float],
    steps: int,
    rows: Sequence[Observation] | None = None,
) -> PlantFit:
    """Fit all or some rows along exact gradients from a plant."""
    return search_plant(
        axis,
        item.unknowns,
        rows or item.observations,
        seed=0,
        generations=0,
        polish=steps,
        start=_shares(item, values),
        integrator=CONTACTS if item.after else STEPPING,
        known=item.fixed,
        exact=True,
    )


def _again(kept: Kept, structures: Sequence[Structure]) -> None:
    """Continue the best starts of every structure, then fit each from the best plants of others.

    A structure that contains another one's plant should not appear worse because of its starts.
    """
    axes: dict[str, Axis] = {}

    def more(item: Structure, values: Mapping[str, float], name: str) -> None:
        if kept.lacks("again", name):
            axis = axes.setdefault(item.name, Axis(item.searched, runs=RUNS))
            steps = POLISH_PLAY if item.after else POLISH_BEST
            kept.keep("again", name, _entry(_local(axis, item, values, steps), item))

    rigid = [item for item, _ in in_order(kept.data, structures) if not item.after]
    with_play = [item for item, _ in in_order(kept.data, structures) if item.after]
    for item in rigid:
        for fit in of_structure(kept.data, item)[:AGAIN]:
            more(item, fit["values"], f"{item.name}, on from loss {fit['loss']:.5g}")
    best = in_order(kept.data, rigid)
    for item in rigid:
        for other, fits in [pair for pair in best if pair[0] is not item][:AGAIN]:
            more(
                item,
                taken_over(item, other.held | fits[0]["values"]),
                f"{item.name}, from {other.name}",
            )
    for item in with_play:
        for other, fits in in_order(kept.data, rigid):
            if other.name == item.after:
                for gap in GAPS:
                    begun = begun_with_play(item.held | fits[0]["values"], gap)
                    more(item, begun, f"{item.name}, {gap:g} m, from loss {fits[0]['loss']:.5g}")


def taken_over(item: Structure, values: Mapping[str, float]) -> dict[str, float]:
    """Return another structure's plant, clipped to the ranges of this one."""
    known = ASSUMED | {"first_share": values["feed_forward_share"]} | dict(values)
    return {
        unknown.name: min(max(known[unknown.name], unknown.lower), unknown.upper)
        for unknown in item.unknowns
    }


def _left_out(kept: Kept) -> None:
    """Fit the best structure with one printed value left out at a time, and with none."""
    item, starts = in_order(kept.data, STRUCTURES)[0]
    axis, rows = Axis(item.searched, runs=RUNS), item.observations
    cases: dict[str, Sequence[Observation]] = {NOTHING: rows}
    for k, row in enumerate(rows):
        for figure in row.measured:
            others = {name: value for name, value in row.measured.items() if name != figure}
            without = replace(row, measured=others, held_out=not others)
            cases[f"{row.name}: {figure}"] = [*rows[:k], without, *rows[k + 1 :]]
    for case, left in cases.items():
        name = f"{item.name}, loss {starts[0]['loss']:.5g}, without {case}"
        if kept.lacks("left_out", name):
            fit = _local(axis, item, starts[0]["values"], POLISH_REST, left)
            kept.keep("left_out", name, _entry(fit, item) | {"row": case, "of": starts[0]["loss"]})


def stored(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stored results: losses of all starts, the best plant of every structure, etc."""
    best, starts = in_order(data, STRUCTURES)[0]
    left_out = {
        fit["row"]: fit
        for fit in of_structure(data, best, "left_out")
        if fit["of"] == starts[0]["loss"]
    }
    structures = {}
    for item, fits in in_order(data, STRUCTURES):
        fit = left_out.pop(NOTHING, fits[0]) if item is best else fits[0]
        held = None if item.after else RIGID
        evaluated = assessed(Axis(item.searched, runs=RUNS), item, item.held | fit["values"], held)
        structures[item.name] = {
            "loss": float(f"{fit['loss']:.8g}"),
            "met": fit["met"],
            "starts": _losses(of_structure(data, item)),
            "again": _losses(of_structure(data, item, "again")),
            "values": fit["values"],
            "rows": [float(f"{row[3]:.6g}") for row in evaluated.rows],
        }
    shipped = data["stages"][WITH_PLAY]
    kept = {
        "core_hours": data["core_hours"],
        "structure": shipped["structure"],
        "best": shipped["values"],
        "swings": shipped["swings"],
        "rows": shipped["rows"],
    }
    losses = {row: float(f"{fit['loss']:.8g}") for row, fit in left_out.items()}
    return kept | {"structures": structures, "left_out": losses}


def _losses(fits: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(f"{fit['loss']:.6g}") for fit in fits]


def write_line(plant: Mapping[str, float], path: Path) -> None:
    """Replace the values of a drive line's file by those of a plant."""
    text = path.read_text(encoding="utf-8")
    gains = {name: plant[f"switching_{name}"] for name in ("kp", "ti", "td")}
    figures = dict(plant) | gains | {"gap": plant["gap1"]}
    for name, value in figures.items():
        text = re.sub(rf"(?m)^(  {name}: (?:\{{value: )?)[-+.\de]+", rf"\g<1>{value:.8g}", text)
    path.write_text(text, encoding="utf-8")


def _shows(swing: Mapping[str, float]) -> bool:
    """Return whether one motor has a limit cycle, and two have none."""
    return CYCLE < swing["one"] < 1.0 and swing.get("as-written", np.inf) < STILL


def assessed(
    axis: Axis,
    item: Structure,
    values: Mapping[str, float],
    held: Mapping[str, float] | None = None,
    more: Sequence[str] = (),
) -> PlantFit:
    """Evaluate a plant of a structure by every row, with the determined directions of its unknowns.

    With play the motors may have all friction.
    """
    unknowns, known = _around(item, values, held, more)
    shares = np.array([unknown.share(values[unknown.name]) for unknown in unknowns])
    stepping = CONTACTS if item.after else STEPPING
    return assess_plant(axis, unknowns, item.observations, shares, integrator=stepping, known=known)


def _around(
    item: Structure,
    values: Mapping[str, float],
    held: Mapping[str, float] | None = None,
    more: Sequence[str] = (),
) -> tuple[list[PlantUnknown], dict[str, float]]:
    """Return the unknowns of a structure with ranges that contain a plant, and all fixed values."""
    names = [unknown.name for unknown in item.unknowns]
    for friction in ("viscous", "coulomb"):
        if values[f"cart_{friction}"] == 0.0 and f"cart_{friction}" in names:
            names[names.index(f"cart_{friction}")] = f"motor_{friction}"
    names += [name for name in more if name not in names]
    unknowns = []
    for name in names:
        unknown, value = UNKNOWNS[name], values[name]
        lower = min(unknown.lower, value / 10) if unknown.logarithmic else unknown.lower
        unknowns.append(replace(unknown, lower=lower, upper=max(unknown.upper, value)))
    known = {**item.held, **values, **(held or {})}
    return unknowns, {name: value for name, value in known.items() if name not in names}


def swings(axis: Axis, plant: Mapping[str, float], *, both: bool = False) -> dict[str, float]:
    """Return the oscillation of the cart long after a step, with the gains of the switching study.

    Args:
        axis: the line.
        plant: parameters of the plant.
        both: whether to simulate two motors even if one does not oscillate.

    Returns:
        The oscillation in the last quarter of the run with one motor and with two, m.
    """
    gains = {
        name: plant[f"switching_{name}"]
        for name in ("kp", "ti", "td")
        if f"switching_{name}" in plant
    }
    left = {}
    for motors in ("one", "as-written"):
        used = axis.with_motors(motors)
        values = {
            name: value for name, value in (dict(plant) | gains).items() if name in used.names
        }
        left[motors] = float(
            simulate_axis(used, values, duration=LASTING, integrator=LONG).swing[0]
        )
        if not both and not left["one"] > CYCLE:
            break
    return left


def in_order(
    data: Mapping[str, Any], structures: Sequence[Structure]
) -> list[tuple[Structure, list[Any]]]:
    """Return the searched structures with all their fits, the best first."""
    known = [
        (
            item,
            sorted(
                of_structure(data, item) + of_structure(data, item, "again"),
                key=lambda fit: float(fit["loss"]),
            ),
        )
        for item in structures
    ]
    return sorted((pair for pair in known if pair[1]), key=lambda pair: float(pair[1][0]["loss"]))


def of_structure(data: Mapping[str, Any], item: Structure, part: str = "starts") -> list[Any]:
    """Return the fits of a structure, the best first."""
    return sorted(
        (fit for fit in data[part].values() if fit["structure"] == item.name),
        key=lambda fit: fit["loss"],
    )


def _split(
    values: Mapping[str, float], mass: float, viscous: float, where: str
) -> dict[str, float]:
    """Return a plant with rigid racks with a part of its mass and friction in the motors."""
    dry = values["cart_coulomb"]
    moved = {
        "cart_mass": mass * values["cart_mass"],
        "motor_inertia": (1 - mass) * values["cart_mass"] * RADIUS**2 / 2,
        "cart_viscous": viscous * values["cart_viscous"],
        "motor_viscous": (1 - viscous) * values["cart_viscous"] * RADIUS**2 / 2,
        "cart_coulomb": 0.0 if where == "motors" else dry,
        "motor_coulomb": dry * RADIUS / 2 if where == "motors" else 0.0,
    }
    return dict(values) | moved


def _entry(fit: PlantFit, item: Structure) -> dict[str, Any]:
    rounded = {name: float(f"{value:.8g}") for name, value in fit.values.items()}
    bars = {
        (row.name, name): bar for row in item.observations for name, bar in row.tolerances.items()
    }
    met = sum(abs(own - printed) <= bars[row, name] for row, name, printed, own, _ in fit.rows)
    counts = {"met": met, "evaluations": fit.evaluations}
    return {"structure": item.name, "loss": fit.loss, "values": rounded, **counts}


if __name__ == "__main__":
    main()
