"""``python tools/site_pictures.py`` (`make pictures`): draw all pictures of the site, or those of some kinds.

Every kind has its own command, which may be used alone; a test checks that every picture of docs/
belongs to a kind.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STROKE = (
    "plan stroke delta --shape spline --via x=0.1 --via y=0.1,z=-0.4 --end x=-0.15 --out stroke.csv"
)


class Kind(NamedTuple):
    """Pictures that the same commands draw, each run by this Python in an empty folder."""

    #: Their paths, as patterns below docs/.
    files: tuple[str, ...]
    commands: tuple[str, ...]


KINDS = {
    "gallery": Kind(
        ("gallery/*.png", "moving.gif"), (f"{ROOT}/tools/gallery_pages.py --pictures --readme",)
    ),
    "explanations": Kind(("pictures/[!r]*.png",), (f"{ROOT}/tools/explanation_pictures.py",)),
    "rerun": Kind(("pictures/rerun.png",), (f"{ROOT}/tools/rerun_picture.py",)),
    "tutorials": Kind(("tutorials/*.png",), (f"{ROOT}/tools/tutorial_pages.py --run",)),
    "viewing": Kind(
        ("viewing.png",),
        (
            f"-m tauloop {STROKE}",
            f"-m tauloop view delta --motion stroke.csv --out {DOCS}/viewing.png",
        ),
    ),
    "browser": Kind(("browser/*.png",), (f"{ROOT}/tools/browser_pictures.py",)),
    "workspace": Kind(
        ("workspace.png",),
        (f"-m tauloop workspace delta --plane x,z --out {DOCS}/workspace.png",),
    ),
    "dual-motor": Kind(
        ("drives/*.gif",), (f"-m tauloop_papers.dual_motor.film {DOCS}/drives/dual-motor.gif",)
    ),
    "gantry-tau": Kind(
        ("reproductions/gantry-tau-*.png",),
        (
            f"-m tauloop_papers.gantry_tau.nearest_figures {DOCS}/reproductions/gantry-tau-figures.png",
        ),
    ),
    "growth": Kind(
        ("growth.png",),
        (f"{ROOT}/benchmarks/bench_growth.py --figure {DOCS}/growth.png",),
    ),
    "speed": Kind(
        ("speed-scaling.png",),
        (f"{ROOT}/benchmarks/bench_scaling.py --seconds 5 --figure {DOCS}/speed-scaling.png",),
    ),
}


def pictures(kind: str) -> set[Path]:
    """Return the existing files of a kind."""
    return {path for pattern in KINDS[kind].files for path in DOCS.glob(pattern)}


def draw(kind: str) -> None:
    """Draw the pictures of a kind."""
    with tempfile.TemporaryDirectory() as folder:
        for command in KINDS[kind].commands:
            subprocess.run([sys.executable, *shlex.split(command)], cwd=folder, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", choices=[[], *KINDS], help="all without it")
    for chosen in parser.parse_args().kinds or KINDS:
        draw(chosen)
