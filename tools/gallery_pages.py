"""``python tools/gallery_pages.py``: write the gallery's pages; ``--films`` also writes the films (`make docs`).

Pages (docs/gallery/*.md) are made from the machine files, and a test compares them. Pictures (PNG)
and the README's animation are drawn by ``--pictures`` and ``--readme``. Films are pages of a
megabyte each, kept out of version control in docs/gallery/films; they are rewritten where a machine
or the drawing code has changed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import numpy as np
import PIL.Image
from pictures import Stage
from strokes import stroke

from tauloop import Model, load, shipped_machines, workspace
from tauloop.display import PARTS
from tauloop.formats import machine_path
from tauloop.mechanism import Mechanism
from tauloop.mechanism.shipped import first_sentence
from tauloop.viewer import save_animation

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
FILMS, CACHED_FILMS = GALLERY / "films", ROOT / "out" / "films"
#: The code that draws films: a change of it makes all films outdated.
DRAWN_BY = ("src/tauloop/geometry", "src/tauloop/viewer", "tests/support")
#: Size of pictures, pixels, and of the tiles of the README's animation.
WIDE, HIGH = 480, 384
TILE, SHOWN, FRAMES = 240, ("irb360", "hexapod", "excavator"), 44
#: Elevation and azimuth (deg) for machines that the default view shows badly.
VIEWS = {
    "bennett": (28.0, -20.0),
    "excavator": (18.0, -60.0),
    "spidermill_spatial": (30.0, -70.0),
    "wishbone": (18.0, -125.0),
}
#: Duration of one round of a film per degree of freedom, s.
SECONDS = 2.5


#: Families of machines, in the order of the first page.
FAMILIES = {
    "Delta robots": ("delta", "irb360", "linear_delta", "nuwar", "par4"),
    "Gantry-Tau machines": ("gantry_tau_3dof", "gantry_tau_6link", "gantry_tau_5dof"),
    "Hexapods": ("hexaglide", "hexapod", "rcid"),
    "Other parallel kinematics": (
        "spidermill",
        "spidermill_spatial",
        "agile_eye",
        "orthoglide",
        "three_prs",
        "three_upu",
        "tricept",
    ),
    "Cable robots": ("cable_camera", "cable_robot"),
    "Planar mechanisms": (
        "four_bar",
        "jansen",
        "peaucellier",
        "slider_crank",
        "five_bar",
        "planar_3rrr",
    ),
    "Spatial linkages": ("bennett", "sarrus", "scissor_lift", "wishbone"),
    "Arms and excavators": ("pendulum_arm", "excavator", "palletiser"),
}
#: Planes of the workspace pictures, by the names of the independent coordinates.
PLANES = {("x", "y", "z"): "x,z", ("carrier.x", "carrier.y", "carrier.z"): "carrier.x,carrier.z"}


def workspace_plane(mechanism: Mechanism) -> str:
    """Return the plane of the workspace picture, or "" for a machine without two translations."""
    names = [name.removeprefix("platform.") for name in mechanism.platform.independent]
    plane = PLANES.get(tuple(names[:3]), "")
    return "x,y" if not plane and names[:2] == ["x", "y"] else plane


def freedoms(mechanism: Mechanism) -> str:
    """Return the sentence of a page about degrees of freedom and actuators."""
    independent = [f"`{name}`" for name in mechanism.platform.independent]
    actuators = counted(len(mechanism.actuators), "actuator")
    return (
        f"{counted(len(independent), 'degree')} of freedom ({', '.join(independent)}), {actuators}."
    )


def counted(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def title_of(description: str) -> str:
    """Return the first clause of a description."""
    return re.split(r"[,:;](?![^(]*\))", first_sentence(description), maxsplit=1)[0]


def page(name: str) -> str:
    """Return the page of a machine."""
    mechanism = load(name)
    folder = machine_path(name).parent
    inside = f"{name}.yaml" if folder.name == "machines" else f"{folder.name}/{name}.yaml"
    plane = workspace_plane(mechanism)
    workspace = f"\n![Workspace in the plane {plane}]({name}-workspace.png)\n" if plane else ""
    return f"""# {name}

[![{name}]({name}.png)](films/{name}.html)

{title_of(mechanism.description)}

{freedoms(mechanism)}
{workspace}
```yaml
--8<-- "{inside}"
```
"""


#: The machine of examples.
FIRST = shipped_machines(gallery=False)[0]


def card(name: str) -> str:
    """Return the card of a machine on the first page."""
    title = title_of(load(name).description)
    return f"- [![{name}]({name}.png)]({name}.md)\n\n    [{name}]({name}.md): {title}\n"


def first_page() -> str:
    """Return the page with all machines by family, and by degrees of freedom."""
    sections = []
    for family, names in FAMILIES.items():
        cards = "\n".join(card(name) for name in names)
        sections.append(f'## {family}\n\n<div class="grid cards" markdown>\n\n{cards}\n</div>\n')
    by_freedom: dict[int, list[str]] = {}
    for name in sorted(shipped_machines()):
        count = len(load(name).platform.independent)
        by_freedom.setdefault(count, []).append(f"[{name}]({name}.md)")
    rows = "\n".join(
        f"| {count} | {', '.join(by_freedom[count])} |" for count in sorted(by_freedom)
    )
    return f"""# Gallery

The machines that come with Tauloop. Commands and `tl.load` take their names: `tauloop view {FIRST}`. A
machine's page shows its file and its workspace. Click its picture for an animation that moves one
degree of freedom after the other.

| degrees of freedom | machines |
|---|---|
{rows}

{"".join(f"{section}{chr(10)}" for section in sections).rstrip()}
"""


def texts() -> dict[str, str]:
    """Return all pages by file name."""
    return {"index.md": first_page()} | {f"{name}.md": page(name) for name in shipped_machines()}


def stage(name: str, q: np.ndarray | None = None) -> Stage:
    """Return the drawing of a machine from its view."""
    model = Model(load(name))
    elevation, azimuth = VIEWS.get(name, (22.0, -55.0))
    return Stage(
        model, model.assembly.q[None] if q is None else q, elevation=elevation, azimuth=azimuth
    )


def draw(name: str) -> str:
    """Write the picture of a machine."""
    image = PIL.Image.fromarray(stage(name).picture(0, WIDE, HIGH))
    image.quantize(96).save(GALLERY / f"{name}.png", optimize=True)
    return name


def draw_workspace(name: str) -> str:
    """Write the picture of a machine's workspace, if it has two translations."""
    mechanism = load(name)
    if plane := workspace_plane(mechanism):
        target = GALLERY / f"{name}-workspace.png"
        result = workspace(mechanism, plane=plane.split(","))
        figure = PARTS["Workspace"].figure(result)
        assert figure is not None
        figure.savefig(target, dpi=70, metadata={"Software": None})
        PIL.Image.open(target).convert("RGB").quantize(64).save(target, optimize=True)
    return name


def film(name: str) -> str:
    """Write the film of a machine, or copy the cached one."""
    files = [
        machine_path(name),
        *(path for folder in DRAWN_BY for path in sorted((ROOT / folder).rglob("*.py"))),
    ]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    kept = CACHED_FILMS / f"{name}-{digest}.html"
    if not kept.exists():
        for old in CACHED_FILMS.glob(f"{name}-*.html"):
            old.unlink()
        model = Model(load(name))
        q = stroke(model)
        save_animation(
            model,
            q,
            np.linspace(0.0, SECONDS * len(model.mechanism.platform.independent), len(q)),
            kept,
        )
    shutil.copyfile(kept, FILMS / f"{name}.html")
    return name


def tile(name: str) -> list[np.ndarray]:
    """Return pictures of a machine along its stroke."""
    q = stroke(Model(load(name)), FRAMES)
    shown = stage(name, q)
    return [shown.picture(int(k), TILE, TILE) for k in np.linspace(0, len(q) - 1, FRAMES + 1)[:-1]]


def moving_picture(path: Path) -> None:
    """Write machines side by side as a GIF."""
    rows = [
        np.concatenate(row, axis=1) for row in zip(*(tile(name) for name in SHOWN), strict=True)
    ]
    images = [PIL.Image.fromarray(row).quantize(40, dither=PIL.Image.Dither.NONE) for row in rows]
    images[0].save(
        path, save_all=True, append_images=images[1:], duration=90, loop=0, optimize=True
    )


def main() -> None:
    """Write the pages, and the pictures and films that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--films", action="store_true", help="write the films into docs/gallery/films too"
    )
    parser.add_argument(
        "--pictures",
        nargs="*",
        metavar="NAME",
        help="draw the pictures again, of all machines or some",
    )
    parser.add_argument("--readme", action="store_true", help="draw the README's moving picture")
    options = parser.parse_args()
    GALLERY.mkdir(exist_ok=True)
    for name, text in texts().items():
        (GALLERY / name).write_text(text, encoding="utf-8")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        if options.pictures is not None:
            list(pool.map(draw, options.pictures or shipped_machines()))
            list(pool.map(draw_workspace, options.pictures or shipped_machines()))
        if options.films:
            FILMS.mkdir(parents=True, exist_ok=True)
            CACHED_FILMS.mkdir(parents=True, exist_ok=True)
            list(pool.map(film, shipped_machines()))
    if options.readme:
        moving_picture(ROOT / "docs" / "moving.gif")


if __name__ == "__main__":
    main()
