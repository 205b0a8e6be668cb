"""Fit the dual-motor plant to the figures that the paper prints, from the shipped plant or from afar.

The whole search, structures and stages included, is `tauloop reproduce dual-motor-plant`.

python examples/dual_motor/fit_plant.py                    # local: where the shipped plant is, with its residuals
python examples/dual_motor/fit_plant.py --generations 100  # global, from the middle of all ranges (minutes)
"""

from __future__ import annotations

import argparse

import numpy as np

from tauloop.drives import DETERMINED, Axis, PlantFit, load_drive, search_plant
from tauloop_papers.dual_motor.settings import SETTINGS, STEPPING


def fit(generations: int = 0, seed: int = 0) -> PlantFit:
    """The fit: local from the shipped plant, or global."""
    axis = Axis(load_drive(SETTINGS.line))
    return search_plant(
        axis,
        SETTINGS.unknowns,
        SETTINGS.observations,
        seed=seed,
        generations=generations,
        start=SETTINGS.shares(axis) if generations == 0 else None,
        integrator=STEPPING,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=0, help="of the global search")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    fitted = fit(arguments.generations, arguments.seed)
    print(f"{fitted.evaluations} plants tried")
    for name, value in fitted.values.items():
        print(f"  {name:20} {value:.6g}")
    for row, name, printed, ours, held_out in fitted.rows:
        print(f"  {row:32} {name:14} {printed:12.5g} {ours:12.5g} {ours / printed - 1:+8.2%}{'  held out' * held_out}")
    print(
        "directions, tolerances that the figures change over the ranges:",
        np.array2string(fitted.sensitivities, precision=2),
    )
    print(f"{len(fitted.undetermined)} below {DETERMINED:g} are not determined:")
    for direction in fitted.undetermined:
        print(f"  {fitted.named(direction)}")


if __name__ == "__main__":
    main()
