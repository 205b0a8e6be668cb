"""``python tests/document_pictures.py``: draw the pictures of docs/*.md that no command of Tauloop draws."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tauloop as tl

DOCS = Path(__file__).parents[1] / "docs"
#: Colours of the viewer: links, motors, the platform.
LINK, MOTOR, TOOL = "#0072b2", "#e69f00", "#d55e00"


def where_circles_meet(first: np.ndarray, second: np.ndarray, radii: tuple[float, float], side: float) -> np.ndarray:
    """The point (2,) at two distances from two centres, on one side of the line between them."""
    way = second - first
    distance = float(np.hypot(*way))
    along = (radii[0] ** 2 - radii[1] ** 2 + distance**2) / (2 * distance)
    across = side * np.sqrt(max(radii[0] ** 2 - along**2, 0.0))
    return np.asarray(first + (along * way + across * np.array([-way[1], way[0]])) / distance)


@cache
def lengths() -> tuple[float, float, float]:
    """Half the distance of the motors, crank and link of the shipped five-bar, m."""
    values = {item.name: item.value for item in tl.load("five_bar").parameters}
    return 0.5 * values["motor_distance"], values["crank_length"], values["link_length"]


def elbows(cranks: tuple[float, float]) -> np.ndarray:
    """Ends (2, 2) of the cranks at two angles, rad."""
    half, crank, _ = lengths()
    return np.array([[-half, 0.0], [half, 0.0]]) + crank * np.column_stack([np.cos(cranks), np.sin(cranks)])


def five_bar(axes: Axes, title: str, cranks: tuple[float, float], tip: np.ndarray, below: str) -> None:
    """A five-bar at two crank angles, rad, with its tip where the links reach."""
    half, _, link = lengths()
    base, pins = np.array([[-half, 0.0], [half, 0.0]]), elbows(cranks)
    assert np.allclose(np.linalg.norm(pins - tip, axis=1), link)
    for motor, pin in zip(base, pins, strict=True):
        axes.plot(*np.array([pin, tip]).T, color="#7db7dd", linewidth=4, solid_capstyle="round")
        axes.plot(*np.array([motor, pin]).T, color=LINK, linewidth=6, solid_capstyle="round")
    axes.scatter(*pins.T, color="white", edgecolor="black", zorder=3, s=35)
    axes.scatter(*base.T, color=MOTOR, edgecolor="black", zorder=3, s=150, marker="s")
    axes.scatter(*tip, color=TOOL, edgecolor="black", zorder=3, s=110)
    axes.set_title(title, fontsize=11)
    axes.text(0.0, -0.17, below, ha="center", va="top", fontsize=9.5)
    axes.set(xlim=(-0.42, 0.42), ylim=(-0.27, 0.62), aspect="equal")
    axes.axis("off")


def singular() -> None:
    """Two assembly modes of a five-bar, and its parallel and serial singularities."""
    half, crank, link = lengths()
    cranks = (2.2, 0.9)
    above, below = (where_circles_meet(*elbows(cranks), (link, link), side) for side in (1.0, -1.0))
    meeting = (float(np.arccos(half / crank)), np.pi - float(np.arccos(half / crank)))  # the elbows coincide
    swinging = elbows(meeting)[0] + link * np.array([np.cos(1.0), np.sin(1.0)])
    straight = np.array([-half, 0.0]) + (crank + link) * np.array([np.cos(0.9), np.sin(0.9)])
    motor = np.array([half, 0.0])
    right = where_circles_meet(motor, straight, (crank, link), -1.0) - motor
    poses = (
        ("assembly mode 1", cranks, above, "regular"),
        ("assembly mode 2", cranks, below, "the same motor angles"),
        ("parallel singularity", meeting, swinging, "the links lie on each other:\nthe tip swings, the motors rest"),
        (
            "serial singularity",
            (0.9, float(np.arctan2(right[1], right[0]))),
            straight,
            "the left leg is stretched:\nthe edge of the workspace",
        ),
    )
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, pose in zip(figure.subplots(1, 4), poses, strict=True):
        five_bar(axes, *pose)
    figure.savefig(DOCS / "singular.png", dpi=110)


if __name__ == "__main__":
    singular()
