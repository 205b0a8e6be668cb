"""Fit the dual-motor plant to all that the paper prints of it, from the best plant so far or from afar.

The whole search of structures is `python -m tauloop_papers.dual_motor.search FILE`.

python examples/dual_motor/fit_plant.py                    # local: where the best plant is, with its residuals
python examples/dual_motor/fit_plant.py --generations 100  # global (minutes)
"""

from __future__ import annotations

import argparse

import numpy as np

from tauloop.drives import DETERMINED, Axis, PlantFit, search_plant
from tauloop_papers.dual_motor.family import STEPPING, STRUCTURES
from tauloop_papers.dual_motor.settings import FOUND


def fit(generations: int = 0, seed: int = 0) -> PlantFit:
    """The fit of the best structure, along exact gradients."""
    names = {item.name: item for item in STRUCTURES}
    structure = names[min(FOUND["structures"], key=lambda name: FOUND["structures"][name]["loss"])]
    best = FOUND["structures"][structure.name]["values"]
    return search_plant(
        Axis(structure.searched),
        structure.unknowns,
        structure.observations,
        seed=seed,
        generations=generations,
        start=np.array([unknown.share(best[unknown.name]) for unknown in structure.unknowns]),
        integrator=STEPPING,
        known=structure.fixed,
        exact=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--generations", type=int, default=0, help="of the global search")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    fitted = fit(arguments.generations, arguments.seed)
    print(f"{fitted.evaluations} plants tried")
    for name, value in fitted.values.items():
        print(f"  {name:20} {value:.6g}")
    for row, name, printed, ours, _ in fitted.rows:
        print(f"  {row:32} {name:14} {printed:12.5g} {ours:12.5g} {ours / printed - 1:+8.2%}")
    print(
        "directions, bars that the figures change over the ranges:",
        np.array2string(fitted.sensitivities, precision=2),
    )
    print(f"{len(fitted.undetermined)} below {DETERMINED:g} are not determined:")
    for direction in fitted.undetermined:
        print(f"  {fitted.named(direction)}")


if __name__ == "__main__":
    main()
