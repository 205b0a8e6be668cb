"""Draw the pictures of pages that explain: ``python tools/explanation_pictures.py [NAME ...]`` (docs/pictures/).

Each is drawn from results of the library, so that a picture shows what the code computes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import casadi as ca
import matplotlib as mpl
import numpy as np
from calibration_sessions import P51, encoders, machine, measured, part_errors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

import tauloop as tl
from tauloop.calibration import (
    Position,
    Series,
    calibration_problem,
    fit_geometry,
    identifiability,
    predicted_readings,
    read_measurements,
)
from tauloop.calibration.judging.observability import NULL_TOLERANCE
from tauloop.compiler.solving.position import incidence, position_equations
from tauloop.display import PARTS
from tauloop.display.plots.elastic_plots import stiffness_plots
from tauloop.display.plots.motion.workspace_plots import FIGURE_POINTS, section_plot
from tauloop.display.renderers.matplotlib_renderer import plots_figure
from tauloop.drives.equations.control import switching
from tauloop.drives.equations.elements import elastic_backlash, stribeck_level
from tauloop.drives.equations.switches import Direct
from tauloop.equations.values import Values
from tauloop.formats import ImportOptions
from tauloop.formats.mjcf.reader import load_mjcf
from tauloop.geometry.machine_geometry import machine_geometry
from tauloop.identification.estimation.error_models import (
    AutocorrelatedErrors,
    EstimatingEquations,
    IndependentErrors,
)
from tauloop.model import ForceSharing
from tauloop.motion.laws import LAWS

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
#: Distinguishable in gray and for color-blind readers (Okabe and Ito).
BLUE, ORANGE, GREEN, GRAY, AMBER = "#0072b2", "#d55e00", "#009e73", "#777777", "#e69f00"
DRAWN = {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": False}


def five_bar_masses() -> Figure:
    """Draw the five-bar as described, and with each link as two point masses and a rotational inertia."""
    model = tl.Model(tl.load("five_bar"))
    value = {
        parameter.name: number for parameter, number in zip(model.parameters, model.pi, strict=True)
    }
    length = model.mechanism.parameters.values
    link, crank = length["link_length"], length["crank_length"]
    angles = np.deg2rad([130.76658827968447, 49.23341172031553])
    motors = np.array([[-0.5, 0.0], [0.5, 0.0]]) * length["motor_distance"]
    elbows = motors + crank * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tip = np.array([0.0, 0.42])
    figure = Figure(figsize=(8.6, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes in (left, right):
        for motor, elbow in zip(motors, elbows, strict=True):
            axes.plot(
                *zip(motor, elbow, tip, strict=True),
                color="#bbbbbb",
                lw=7,
                solid_capstyle="round",
                zorder=1,
            )
            axes.plot(*motor, marker="s", ms=13, color="#444444", zorder=2)
        axes.set_aspect("equal")
        axes.axis("off")
        axes.set_xlim(-0.37, 0.37)
        axes.set_ylim(-0.06, 0.51)
    centers = {
        f"crank 1\n{value['crank_1.m']:g} kg": motors[0] + (elbows[0] - motors[0]) * 0.45,
        f"crank 2\n{value['crank_2.m']:g} kg": motors[1] + (elbows[1] - motors[1]) * 0.45,
        f"link 1 and tool\n{value['link_1.m']:g} kg": tip
        + (elbows[0] - tip) * -value["link_1.mcx"] / value["link_1.m"] / link,
        f"link 2\n{value['link_2.m']:g} kg": elbows[1]
        + (tip - elbows[1]) * value["link_2.mcx"] / value["link_2.m"] / link,
    }
    for text, at in centers.items():
        left.plot(*at, "o", ms=11, color=BLUE, zorder=3)
        side = np.sign(at[0]) or 1.0
        left.annotate(
            text, at, (at[0] + 0.045 * side, at[1]), va="center", ha="left" if side > 0 else "right"
        )
    left.set_title("as described: 16 numbers in the plane")
    near, far = value["link_2.m"] - value["link_2.mcx"] / link, value["link_2.mcx"] / link
    other = -value["link_1.mcx"] / link
    points = [
        (elbows[0], f"{other:.3g} kg of link 1\nand of crank 1", "right", (-0.03, 0.0)),
        (elbows[1], f"{near:.3g} kg of link 2\nand of crank 2", "left", (0.03, 0.0)),
        (
            tip,
            f"{value['link_1.m'] - other + far:.3g} kg\nof both links and the tool",
            "center",
            (0.0, 0.055),
        ),
    ]
    for at, text, align, (dx, dy) in points:
        right.plot(*at, "o", ms=15, color=ORANGE, zorder=3)
        right.annotate(text, at, (at[0] + dx, at[1] + dy), va="center", ha=align)
    for at, name in ((0.5 * (elbows[0] + tip), "J + h L"), (0.5 * (elbows[1] + tip), "J − h L")):
        right.plot(*at, marker="o", ms=20, mfc="none", mec=GREEN, mew=2.0, zorder=3)
        side = np.sign(at[0])
        right.annotate(
            name,
            at,
            (at[0] + 0.05 * side, at[1] + 0.03),
            ha="left" if side > 0 else "right",
            color=GREEN,
        )
    right.text(
        0.0, -0.03, "masses on the motor axes do not move", ha="center", va="top", fontsize=8
    )
    right.set_title("as forces see it: 11")
    return figure


def error_bars() -> Figure:
    """Draw forty estimates of a mean from correlated noise, with the error bars of two models of the errors."""
    rng, runs, samples, mean = np.random.default_rng(4), 40, 300, 12
    white = rng.standard_normal((runs, samples + mean - 1))
    noise = np.stack([np.convolve(row, np.ones(mean), "valid") for row in white]) / mean**0.5
    ones = np.ones((samples, 1, 1))
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    first, *others = figure.subplots(1, 3, width_ratios=[1.1, 1, 1])
    first.plot(noise[0], color=GRAY, lw=1)
    first.axhline(0.0, color="black", lw=0.8)
    first.set_title("errors of one log")
    first.set_xlabel("sample")
    first.set_ylabel("error / its size")
    for axes, model, name in zip(
        others,
        (IndependentErrors(), AutocorrelatedErrors()),
        ("independent", "autocorrelated"),
        strict=True,
    ):
        missed = 0
        for run, error in enumerate(noise):
            estimate = error.mean()
            case = EstimatingEquations(
                instruments=ones, regressor=ones, residual=(error - estimate)[:, None]
            )
            bar = 1.96 * float(np.sqrt(model.covariance(case)[0, 0]))
            misses = abs(estimate) > bar
            missed += misses
            axes.plot(
                [estimate - bar, estimate + bar],
                [run, run],
                color=ORANGE if misses else BLUE,
                lw=2.6 if misses else 1.4,
            )
        axes.axvline(0.0, color="black", lw=0.8)
        axes.set_xlim(-1.1, 1.1)
        axes.set_yticks([])
        axes.set_title(f"--errors {name}:\n{missed} of {runs} bars miss")
        axes.set_xlabel("estimate less truth")
    return figure


def _curve(axes: Axes, x: np.ndarray, f: Callable[[ca.SX], ca.SX], **drawn: object) -> None:
    symbol = ca.SX.sym("x")
    axes.plot(x, np.asarray(ca.Function("f", [symbol], [f(symbol)])(x[None, :])).ravel(), **drawn)


def drive_lines() -> Figure:
    """Draw backlash, friction and switching of two motors, as in the equations of drive lines."""
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    play, friction, switch = figure.subplots(1, 3)
    x = np.linspace(-1.0, 1.0, 801)
    gap, stiffness, damping = 0.6, 10.0, 1.0
    for speed, color, dash in ((0.0, "black", "-"), (2.0, BLUE, "--"), (-2.0, ORANGE, ":")):
        _curve(
            play,
            x,
            lambda D, w=speed: elastic_backlash(
                ca.SX(gap), ca.SX(stiffness), ca.SX(damping), D, ca.SX(w), Direct(), "play"
            ),
            color=color,
            ls=dash,
            label={0.0: "at rest", 2.0: "D grows", -2.0: "D falls"}[speed],
        )
    play.axvspan(-gap / 2, gap / 2, color="#eeeeee", lw=0)
    play.set_title("elastic backlash")
    play.set_xlabel("deflection D")
    play.set_ylabel("force")
    play.legend(frameon=False, fontsize=8, handlelength=1.5)
    v = np.concatenate([np.linspace(-1.0, -1e-9, 200), np.linspace(1e-9, 1.0, 200)])
    for static, color, dash, name in (
        (1.0, BLUE, "--", "Coulomb"),
        (1.6, "black", "-", "Stribeck"),
    ):
        _curve(
            friction,
            v,
            lambda s, static=static: (
                ca.sign(s) * stribeck_level(ca.SX(1.0), ca.SX(static), ca.SX(0.15), s) + 0.5 * s
            ),
            color=color,
            ls=dash,
            label=name,
        )
    friction.set_title("friction while sliding")
    friction.set_xlabel("speed v")
    friction.set_ylabel("force against v")
    friction.legend(frameon=False, fontsize=8, loc="upper left", handlelength=1.5)
    e = np.linspace(0.0, 1.0, 400)
    _curve(switch, e, lambda e: switching(e, ca.SX(0.2), ca.SX(0.7), Direct()), color="black")
    switch.set_title("two motors: switching")
    switch.set_xlabel("|error| / |step|")
    switch.set_ylabel("v")
    switch.set_yticks([-1, 0], ["−1", "0"])
    switch.set_xticks([0.2, 0.7], ["switch_min", "switch_max"])
    switch.text(0.42, -0.97, "slave pulls back", fontsize=8)
    switch.text(0.99, -0.1, "slave drives", fontsize=8, ha="right")
    for axes in (play, friction):
        axes.set_xticks([0.0])
        axes.set_yticks([0.0])
    return figure


def motion_laws() -> Figure:
    """Draw progress, speed and acceleration of every law over normalized time."""
    figure = Figure(figsize=(8.6, 3.0), layout="constrained")
    panels = figure.subplots(1, 3)
    x = np.linspace(0.0, 1.0, 801)
    styles = [("black", "-"), (BLUE, "--"), (ORANGE, "-."), (GREEN, ":"), (GRAY, (0, (6, 1)))]
    for (name, law), (color, dash) in zip(LAWS.items(), styles, strict=True):
        progress = law.at(x)
        for axes, values in zip(panels, (progress.s, progress.first, progress.second), strict=True):
            axes.plot(x, values, color=color, ls=dash, label=name)
    for axes, title in zip(
        panels, ("progress s", "speed ds/dx", "acceleration d²s/dx²"), strict=True
    ):
        axes.set_title(title)
        axes.set_xlabel("time / duration, x")
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def where_circles_meet(
    first: np.ndarray, second: np.ndarray, radii: tuple[float, float], side: float
) -> np.ndarray:
    """Return the point (2,) at two distances from two centers, on one side of the line between them."""
    way = second - first
    distance = float(np.hypot(*way))
    along = (radii[0] ** 2 - radii[1] ** 2 + distance**2) / (2 * distance)
    across = side * np.sqrt(max(radii[0] ** 2 - along**2, 0.0))
    return np.asarray(first + (along * way + across * np.array([-way[1], way[0]])) / distance)


@cache
def five_bar_lengths() -> tuple[float, float, float]:
    """Return half the distance of the motors, crank and link of the shipped five-bar, m."""
    values = {item.name: item.value for item in tl.load("five_bar").parameters}
    return 0.5 * values["motor_distance"], values["crank_length"], values["link_length"]


def elbows(cranks: tuple[float, float]) -> np.ndarray:
    """Return the ends (2, 2) of the cranks at two angles, rad."""
    half, crank, _ = five_bar_lengths()
    return np.array([[-half, 0.0], [half, 0.0]]) + crank * np.column_stack(
        [np.cos(cranks), np.sin(cranks)]
    )


def five_bar_at(
    axes: Axes, title: str, cranks: tuple[float, float], tip: np.ndarray, below: str
) -> None:
    """Draw a five-bar at two crank angles, rad, with its tip where the links meet."""
    half, _, link = five_bar_lengths()
    base, pins = np.array([[-half, 0.0], [half, 0.0]]), elbows(cranks)
    assert np.allclose(np.linalg.norm(pins - tip, axis=1), link)
    for motor, pin in zip(base, pins, strict=True):
        axes.plot(*np.array([pin, tip]).T, color="#7db7dd", linewidth=4, solid_capstyle="round")
        axes.plot(*np.array([motor, pin]).T, color=BLUE, linewidth=6, solid_capstyle="round")
    axes.scatter(*pins.T, color="white", edgecolor="black", zorder=3, s=35)
    axes.scatter(*base.T, color=AMBER, edgecolor="black", zorder=3, s=150, marker="s")
    axes.scatter(*tip, color=ORANGE, edgecolor="black", zorder=3, s=110)
    axes.set_title(title, fontsize=11)
    axes.text(0.0, -0.17, below, ha="center", va="top", fontsize=9.5)
    axes.set(xlim=(-0.42, 0.42), ylim=(-0.27, 0.62), aspect="equal")
    axes.axis("off")


def singular_poses() -> Figure:
    """Draw two assembly modes of a five-bar, and its parallel and serial singularities."""
    half, crank, link = five_bar_lengths()
    cranks = (2.2, 0.9)
    above, below = (where_circles_meet(*elbows(cranks), (link, link), side) for side in (1.0, -1.0))
    # the elbows coincide
    meeting = (float(np.arccos(half / crank)), np.pi - float(np.arccos(half / crank)))
    swinging = elbows(meeting)[0] + link * np.array([np.cos(1.0), np.sin(1.0)])
    straight = np.array([-half, 0.0]) + (crank + link) * np.array([np.cos(0.9), np.sin(0.9)])
    motor = np.array([half, 0.0])
    right = where_circles_meet(motor, straight, (crank, link), -1.0) - motor
    poses = (
        ("assembly mode 1", cranks, above, "regular"),
        ("assembly mode 2", cranks, below, "the same motor angles"),
        (
            "parallel singularity",
            meeting,
            swinging,
            "the links lie on each other:\nthe tip swings, the motors rest",
        ),
        (
            "serial singularity",
            (0.9, float(np.arctan2(right[1], right[0]))),
            straight,
            "the left leg is stretched:\nthe edge of the workspace",
        ),
    )
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    for axes, pose in zip(figure.subplots(1, 4), poses, strict=True):
        five_bar_at(axes, *pose)
    return figure


def proved_workspace() -> Figure:
    """Draw the parts of a proved box of the five-bar, and a pose that refutes a larger one."""
    boxes = {
        "proved": {"x": (-0.12, 0.12), "y": (0.33, 0.47)},
        "refuted": {"x": (-0.2, 0.2), "y": (0.25, 0.5)},
    }
    _, _, link = five_bar_lengths()
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for axes, (title, ranges) in zip(figure.subplots(1, 2), boxes.items(), strict=True):
        result = tl.certify("five_bar", ranges=ranges, parallel=0.4)
        assert result.verdict == title
        cranks = (2.2823, np.pi - 2.2823)
        tip = where_circles_meet(*elbows(cranks), (link, link), 1.0)
        five_bar_at(axes, f"{title} (at least 0.4)", cranks, tip, "")
        outcome = result.outcome
        domain, width = outcome.domain, 0.5**outcome.level
        low = domain.lower + (domain.upper - domain.lower) * outcome.index * width
        for corner, size in zip(low, (domain.upper - domain.lower) * width, strict=True):
            axes.add_patch(
                Rectangle(corner, *size, facecolor="#b7dfc9", edgecolor=GREEN, zorder=2.5)
            )
        whole = domain.upper - domain.lower
        axes.add_patch(Rectangle(domain.lower, *whole, fill=False, edgecolor="black", zorder=2.6))
        if result.counterexample is not None:
            bad = list(result.counterexample.values())
            axes.scatter(*bad, color=ORANGE, marker="x", s=120, linewidth=3, zorder=4)
    return figure


def synthesized_delta() -> Figure:
    """Draw compromises of a task of a delta, and two of its designs with their cylinder."""
    task = Path(__file__).parents[1] / "examples" / "synthesis" / "delta.yaml"
    (structure,) = tl.synthesize(task).structures
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    front, *sides = figure.subplots(1, 3, width_ratios=(1.3, 1.0, 1.0))
    order = np.argsort(structure.front[:, 0])
    front.plot(1e3 * structure.front[order, 0], structure.front[order, 1], ".-", color=BLUE)
    for axes, design in zip(sides, structure.designs, strict=True):
        size, evenness = design.objectives["size"], design.objectives["evenness"]
        front.scatter(1e3 * size, evenness, s=90, color=ORANGE, zorder=3)
        title = f"{1e3 * size:.0f} mm, {evenness:.2f}"
        _delta_from_the_side(axes, tl.loads(design.machine.text), title)
    front.set(xlabel="arm and forearm [mm]", ylabel="largest condition number")
    return figure


def _delta_from_the_side(axes: Axes, mechanism: tl.Mechanism, title: str) -> None:
    """Draw a delta at its reference pose seen along y, with the ranges of its platform."""
    model = tl.Model(mechanism)
    q = dict(zip(model.topology.coordinate_names, model.assembly.q, strict=True))
    value = mechanism.value
    for leg in (3, 2, 1):
        azimuth = 2.0 * np.pi * (leg - 1) / 3
        angle = q[f"leg{leg}.shoulder"]
        arm = value("arm_length")
        reach = value("motor_radius") + np.array([0.0, arm * np.cos(angle)])
        x = np.cos(azimuth) * np.append(reach, value("plate_radius"))
        z = np.array([0.0, -arm * np.sin(angle), q["platform.z"]])
        color = BLUE if leg == 1 else "#7db7dd"
        axes.plot(x, z, "o-", color=color, linewidth=3, markersize=5)
    freedoms = mechanism.freedoms
    low = np.array([freedoms[f"platform.{name}"].lower for name in "xz"])
    high = np.array([freedoms[f"platform.{name}"].upper for name in "xz"])
    axes.add_patch(Rectangle(low, *(high - low), facecolor="#b7dfc9", edgecolor=GREEN, zorder=0))
    axes.set(xlim=(-0.65, 0.65), ylim=(-0.65, 0.2), aspect="equal", title=title)
    axes.axis("off")


def calibration_directions() -> Figure:
    """Draw singular values of the 51 parameters of the six-link Gantry-Tau seen by a tracker."""
    name, rng = "gantry_tau_6link", np.random.default_rng(3)
    off = part_errors(name, P51, 1e-3, rng)
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    axes = figure.subplots()
    limit = 0.0
    for values, color, marker, label in (
        ({}, ORANGE, "s", "as drawn"),
        (off, BLUE, "o", "parts 1 mm off"),
    ):
        nominal = machine(name).with_values(values)
        series = measured(
            name, values, Position(name="t"), encoders(name, 60, np.random.default_rng(5)), 2e-5
        )
        seen = identifiability(
            calibration_problem(nominal, [series], P51), np.random.default_rng(2)
        )
        sizes = np.maximum(np.array(seen.singular_values), 2e-15)
        limit = NULL_TOLERANCE * sizes.max()
        axes.semilogy(
            np.arange(1, len(sizes) + 1),
            sizes,
            ls="",
            marker=marker,
            ms=4.5,
            color=color,
            label=label,
        )
    axes.axhspan(1e-15, limit, color="#dddddd", lw=0)
    axes.axhspan(limit, 1.0, color="#f3e3d8", lw=0)
    axes.axhline(1.0, color="black", lw=0.8)
    axes.set_ylim(1e-15, 1e4)
    for height, text in (
        (8.0, "seen"),
        (1e-4, "weak: the noise hides a tolerance"),
        (1e-11, "not seen at all"),
    ):
        axes.text(1.0, height, text, va="center")
    axes.set_xlabel("direction of the 51 parameters")
    axes.set_ylabel("singular value:\nnoise deviations per tolerance")
    axes.legend(frameon=False, loc="center", bbox_to_anchor=(0.45, 0.22))
    return figure


def from_file_to_forces() -> Figure:
    """Draw what each step between a machine file and numbers makes, with the page that explains it."""
    steps = (
        ("machine.yaml", "YAML, URDF,\nSDF, MJCF", "machine file"),
        ("Mechanism", "checked, frozen", "machine file"),
        ("loops", "closed, ranked,\nsorted into blocks", "loops"),
        ("dynamics", "M a + h, by one of\nfour formulations", "formulations"),
        ("program", "interpreted,\nor C code", "generated code"),
        ("numbers", "with diagnostics", "kinematics"),
    )
    figure = Figure(figsize=(11, 2.1), layout="constrained")
    axes = figure.subplots()
    for i, (name, what, page) in enumerate(steps):
        color = GRAY if i in (0, len(steps) - 1) else BLUE
        axes.add_patch(
            FancyBboxPatch(
                (i - 0.4, 0.0), 0.8, 1.0, boxstyle="round,pad=0.03", fc="white", ec=color, lw=2
            )
        )
        axes.text(i, 0.72, name, ha="center", va="center", fontsize=10, weight="bold")
        axes.text(i, 0.32, what, ha="center", va="center", fontsize=9)
        axes.text(i, -0.2, page, ha="center", va="top", fontsize=9, color=GRAY, style="italic")
        if i:
            axes.annotate(
                "", (i - 0.43, 0.5), (i - 0.57, 0.5), arrowprops={"arrowstyle": "->", "lw": 1.8}
            )
    axes.set(xlim=(-0.55, len(steps) - 0.45), ylim=(-0.5, 1.1))
    axes.axis("off")
    return figure


def loop_blocks() -> Figure:
    """Draw which loop equation of the unreduced SpiderMill contains which unknown: unsorted and sorted."""
    model = tl.Model(tl.load("spidermill"))
    solved, topology = model.platform.blocks, model.topology
    names = [name for block in solved for name in block.unknowns]
    unknown = tuple(sorted(topology.coordinate_names.index(name) for name in names))
    values = Values(model.mechanism.parameters.values)
    equations = position_equations(model.mechanism, topology, values, model.assembly.rows, unknown)
    pattern = np.array(ca.DM(incidence(equations, topology, unknown), 1).full())
    rows = [equations.names.index(name) for block in solved for name in block.equations]
    columns = [unknown.index(topology.coordinate_names.index(name)) for name in names]
    n = len(names)
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for axes, matrix in zip(
        figure.subplots(1, 2), (pattern, pattern[np.ix_(rows, columns)]), strict=True
    ):
        y, x = np.nonzero(matrix)
        axes.scatter(x, y, marker="s", s=90, color=BLUE)
        axes.set(xlim=(-0.6, n - 0.4), ylim=(n - 0.4, -0.6), aspect="equal", xticks=[], yticks=[])
        axes.set_xlabel("unknown coordinates")
        axes.set_ylabel("loop equations")
    first, second = figure.axes
    first.set_title(f"as they stand: {n} equations, {n} unknowns")
    second.set_title(f"sorted: {len(solved)} blocks, one after the other")
    at = 0
    for block in solved:
        size = len(block.unknowns)
        second.add_patch(
            Rectangle((at - 0.45, at - 0.45), size - 0.1, size - 0.1, fill=False, ec=ORANGE, lw=2)
        )
        second.text(n - 0.2, at + size / 2 - 0.5, block.method, va="center", fontsize=9)
        at += size
    return figure


def plan_path() -> Figure:
    """Draw a time-optimal stroke of the delta, and the limits that it reaches."""
    stroke = tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1})
    result = tl.plan_path(
        tl.load("delta"), tl.PathOptions(stroke=stroke, payload=0.1, intervals=200)
    )
    return drawn("FastestMotion", result)


def cycles() -> Figure:
    """Draw a cycle of the delta between two conveyors, with motors that bear 0.35 of their largest torque."""
    path = Path(__file__).parents[1] / "examples" / "cycles" / "conveyor.yaml"
    result = tl.plan_cycle(tl.load("delta"), path, tl.CycleOptions(intervals=100, rated=0.35))
    return drawn("Cycle", result)


def motors() -> Figure:
    """Draw torque over speed of the delta's motors in a stroke, for the lightest motor and gear."""
    start, end = np.array([-0.15, 0.0, -0.5]), np.array([0.15, 0.0, -0.5])
    share = np.linspace(0.0, 1.0, 201)
    total = 0.25
    position, rate, second = (np.polyval(np.polyder(QUINTIC, k), share) for k in range(3))
    x, v, a = (
        np.outer(law, end - start) / total**k for k, law in enumerate((position, rate, second))
    )
    motion = tl.inverse_dynamics("delta", start + x, v, a, time=share * total, payload=0.3)
    catalogue = Path(__file__).parents[1] / "examples" / "motors.yaml"
    sizing = tl.size_motors(motion.model, motion, catalogue=catalogue)
    return drawn("MotorSizing", sizing)


#: The law of a stroke, 10 s^3 - 15 s^4 + 6 s^5.
QUINTIC = (6.0, -15.0, 10.0, 0.0, 0.0, 0.0)


def predictive_tracking() -> Figure:
    """Draw a stroke of the delta beyond its torques, under computed torque and under predictive tracking."""
    stroke = tl.StrokeOptions(start={"y": -0.1}, end={"y": 0.1}, share=1.2)
    laws = ("computed-torque", "predictive")
    options = tl.ControlOptions(stroke=stroke, controller=laws)
    return drawn("ControlComparison", tl.follow_path(tl.load("delta"), options))


def load_cases() -> Figure:
    """Draw the loads of the first shoulder over the delta's cycle, with the times of its load cases."""
    path = Path(__file__).parents[1] / "examples" / "cycles" / "adept.yaml"
    log = tl.plan_cycle("delta", path).log(1000.0)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "cycle.csv"
        tl.logs.write_log(table, log)
        motion = tl.inverse_dynamics("delta", motion=table, joint_forces=True)
    joint, cases = motion.joint("leg2.shoulder"), motion.joint_forces.load_cases()
    assert joint.radial is not None
    assert joint.axial is not None
    figure = Figure(figsize=(8.6, 3.2), layout="constrained")
    axes = figure.subplots()
    for name, values, color in (("radial", joint.radial, BLUE), ("axial", joint.axial, ORANGE)):
        axes.plot(1e3 * motion.time, values, color=color, label=name)
    for name, case in cases.of("leg2.shoulder").items():
        if name in ("largest radial force", "largest axial force", "smallest axial force"):
            color = BLUE if "radial" in name else ORANGE
            value = case.radial if "radial" in name else case.axial
            axes.plot(1e3 * case.time, value, "o", color=color)
            axes.annotate(
                f"{name}\n{value:.0f} N at {1e3 * case.time:.0f} ms",
                (1e3 * case.time, value),
                xytext=(8, 4 if value > 0 else -24),
                textcoords="offset points",
                fontsize=8,
            )
    axes.set(xlabel="time, ms", ylabel="force in leg2.shoulder, N")
    axes.margins(y=0.2)
    axes.legend(frameon=False)
    return figure


def printer_bed() -> Figure:
    """Draw the errors of the bed's height at the points that Klipper has probed."""
    path = Path(__file__).parents[1] / "examples" / "printers" / "kossel.cfg"
    parameters = ("delta_radius", "tower1.angle", "tower2.angle", "tower*.end_stop")
    result = tl.calibrate(path, path, noise="0.01 mm", parameters=parameters)
    (series,) = read_measurements(path, tl.load(path), noise=1e-5).series
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    pair = figure.subplots(1, 2, sharex=True, sharey=True)
    machines = {"before": tl.load(path), "after": result.mechanism}
    for axes, (title, printer) in zip(pair, machines.items(), strict=True):
        model = tl.Model(printer)
        q = model.forward_kinematics(series.encoders).q
        x, y, z = 1e3 * machine_geometry(model, q).tool.T
        error = z - 1e3 * series.readings[:, 0]
        points = axes.scatter(x, y, c=error, cmap="coolwarm", vmin=-1.0, vmax=1.0, s=160)
        for px, py, value in zip(x, y, error, strict=True):
            axes.annotate(f"{value:+.2f}", (px, py), ha="center", va="center", fontsize=6)
        rms = float(np.sqrt(np.mean(error**2)))
        axes.set(title=f"{title}: {rms:.3f} mm RMS", xlabel="x, mm", aspect="equal")
    pair[0].set_ylabel("y, mm")
    figure.colorbar(points, ax=pair, label="height less the probed height, mm")
    return figure


def tendons() -> Figure:
    """Draw the finger of MuJoCo's tendons bent and straight, and the tensions that hold it."""
    path = Path(__file__).parents[1] / "examples" / "cables" / "finger.xml"
    machine = load_mjcf(path, options=ImportOptions(platform_body="tip"))
    model = tl.Model(machine)
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    colors = dict(zip(machine.cables, (ORANGE, AMBER, BLUE, GREEN), strict=True))
    for pose, alpha in (((0.0, 0.0), 0.35), ((0.7, 0.2), 1.0)):
        _draw_finger(left, model, np.array(pose), colors, alpha)
    left.set_aspect("equal")
    left.set(xlabel="x, mm", ylabel="z, mm", title="straight, and bent by 40° and 11°")
    angles = np.linspace(0.0, 0.9, 61)
    x = np.stack([angles, np.full_like(angles, 0.2)], axis=1)
    sharing = ForceSharing(preload=3.0)
    forces = model.platform.inverse_dynamics(x, 0.0 * x, 0.0 * x, sharing=sharing)
    for k, (name, color) in enumerate(colors.items()):
        right.plot(np.rad2deg(angles), forces.tension[:, k], color=color, label=name)
    right.set(xlabel="angle of the knuckle, °", ylabel="tension, N", title="tensions at rest")
    right.set_ylim(0.0)
    right.legend(frameon=False)
    return figure


def _draw_finger(
    axes: Axes, model: tl.Model, pose: np.ndarray, colors: dict[str, str], alpha: float
) -> None:
    """Draw bones as lines through the joints and the tip, and each cable."""
    geometry = machine_geometry(model, model.inverse_kinematics(pose).q)
    cables = [segment.name for segment in geometry.shape.segments]
    middle = geometry.origins[0, [body.name for body in geometry.shape.bodies].index("distal")]
    bones = 1e3 * np.stack([np.zeros(3), middle, geometry.tool[0]])
    axes.plot(bones[:, 0], bones[:, 2], color=GRAY, lw=6, alpha=0.5 * alpha)
    for name, color in colors.items():
        ends = 1e3 * geometry.segments[0, cables.index(name)]
        axes.plot(ends[:, 0], ends[:, 2], "o-", ms=3, color=color, alpha=alpha)


def actuator_map() -> Figure:
    """Draw motor positions of the two-rod ankle over pitch, and reach of its joints under the stops of the motors."""
    path = Path(__file__).parents[1] / "examples" / "ankles" / "two_rods.yaml"
    ankle = tl.ActuatorMap(path, joints=["pitch", "roll"])
    figure = Figure(figsize=(8.6, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    pitch = np.linspace(-30.0, 30.0, 61)
    for roll, color in ((-10.0, BLUE), (0.0, GRAY), (10.0, ORANGE)):
        joints = np.radians(np.stack([pitch, np.full(len(pitch), roll)], axis=1))
        motors = np.degrees(ankle.joint_to_actuator_position(joints))
        left.plot(pitch, motors[:, 0], color=color, label=f"roll {roll:+.0f}°, motor 1")
        left.plot(pitch, motors[:, 1], "--", color=color, label=f"roll {roll:+.0f}°, motor 2")
    left.set(xlabel="pitch [°]", ylabel="motor position [°]", title="motors of an ankle")
    left.legend(fontsize=7)
    torque = 40.0 * np.stack([np.cos(TURN), np.sin(TURN)], axis=1)
    for angle, color in ((-20.0, BLUE), (0.0, GRAY), (20.0, ORANGE)):
        joints = np.radians(np.tile([angle, 0.0], (len(TURN), 1)))
        clipped = ankle.clip_joint_effort(joints, torque)
        right.plot(*clipped.T, color=color, label=f"pitch {angle:+.0f}°")
    right.set(xlabel="torque in pitch [N m]", ylabel="torque in roll [N m]", aspect="equal")
    right.set_title("torques of 40 N m, clipped at the motors")
    right.legend(fontsize=7)
    return figure


def loaded_calibration() -> Figure:
    """Draw errors under loads before and after a calibration, and deviations of its unknowns."""
    path = Path(__file__).parents[1] / "examples" / "elastic" / "gantry_tau.yaml"
    drawing = tl.load(path)
    soft = {"drive_stiffness": 12e6, "aluminium.young_modulus": 55e9}
    built = drawing.with_values(soft)
    rng = np.random.default_rng(0)
    model = tl.Model(drawing)
    series = []
    for _ in range(2):
        poses = rng.uniform(-0.2, 0.2, (20, 3)).repeat(3, axis=0)
        motors = model.actuator_position(model.inverse_kinematics(poses).q)
        loads = 500.0 * np.eye(3, 6)[np.arange(60) % 3]
        tracker = Position(name="tracker")
        item = Series(instrument=tracker, encoders=motors, readings=poses, noise=2e-5, loads=loads)
        series.append(replace(item, readings=predicted_readings(built, item)))
    measured_series, other = series
    noise = 2e-5 * rng.standard_normal((60, 3))
    measured_series = replace(measured_series, readings=measured_series.readings + noise)
    problem = calibration_problem(drawing, [measured_series], tuple(soft))
    result = fit_geometry(problem, rng)
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    for name, machine_file, color in (
        ("drawing", drawing, ORANGE),
        ("calibrated", result.mechanism, BLUE),
    ):
        error = 1e6 * (predicted_readings(machine_file, other) - other.readings)
        size = np.linalg.norm(error, axis=1)
        left.bar(np.arange(60), size, color=color, label=f"{name}: mean {size.mean():.1f} µm")
    left.set(xlabel="other poses, under 500 N along x, y, z", ylabel="error of the tool, µm")
    left.set_ylim(0.0, 48.0)
    left.legend(frameon=False, loc="upper left")
    bars = {
        estimate.name.replace("_", " "): 100 * estimate.half_width / estimate.tolerance * 0.3
        for estimate in result.estimates
        if estimate.half_width is not None
    }
    for k, item in enumerate(result.base_combinations):
        assert item.half_width is not None
        bars[f"combination {k + 1}"] = 100 * item.half_width * 0.3
    names = list(bars)[::-1]
    colors = [BLUE if name.startswith("combination") else GRAY for name in names]
    right.barh(names, [bars[name] for name in names], color=colors)
    right.set(xlabel="95 % interval, ± %")
    return figure


#: Directions of a torque, rad.
TURN = np.linspace(0.0, 2.0 * np.pi, 181)


def drawn(part: str, result: object) -> Figure:
    """Return the figure of a result."""
    figure = PARTS[part].figure(result)
    assert figure is not None
    return figure


def stiffness_map() -> Figure:
    """Draw the stiffness of a Gantry-Tau in its softest direction over y and z, and its parts."""
    model = tl.Model(Path(__file__).parents[1] / "examples" / "elastic" / "gantry_tau.yaml")
    ranges = {"y": (-0.4, 0.4), "z": (-0.4, 0.3)}
    grid = tl.workspace(model, plane=("y", "z"), ranges=ranges, resolution=0.02)
    mapped = tl.elastic_map(grid, quantities=("stiffness",))
    section = section_plot(mapped, "stiffness", FIGURE_POINTS)
    shares, *_ = stiffness_plots(tl.stiffness(model))
    return plots_figure("", [section, shares], 2)


GANTRY_TAU = Path(__file__).parents[1] / "examples" / "synthesis" / "gantry_tau"
#: Positions of the platform over its box, m; nothing depends on x.
BOX = np.array(
    [[0.0, y, z] for y in np.linspace(-0.15, 0.15, 5) for z in np.linspace(-0.15, 0.15, 5)]
)


def lowest_over_box(machine_file: tl.Mechanism) -> tuple[float, float]:
    """Return the lowest stiffness, N/um, and first mode, Hz, of a Gantry-Tau over its box."""
    model = tl.Model(machine_file)
    lowest = tl.stiffness(model, BOX).worst_translational.min()
    return 1e-6 * lowest, tl.vibration(model, BOX, count=1).frequency.min()


def front_of_tubes() -> Figure:
    """Draw lowest stiffness and first mode of designs with thin tubes, and two of them with their box."""
    baseline = tl.load(GANTRY_TAU / "machine.yaml")
    figure = Figure(figsize=(8.0, 6.4), layout="constrained")
    grid = figure.add_gridspec(2, 3, height_ratios=(1.7, 1.0))
    front = figure.add_subplot(grid[0, :])
    sides = [figure.add_subplot(grid[1, k]) for k in range(3)]
    _gantry_along_tracks(sides[0], baseline, "baseline")
    for pattern, name, color, axes in (
        ("joints_*", "at most 2 mm: joints and tubes free", ORANGE, sides[1]),
        ("design_*", "at most 2 mm: tracks and lengths free too", BLUE, sides[2]),
    ):
        designs = [tl.load(path) for path in sorted(GANTRY_TAU.glob(f"{pattern}.yaml"))]
        points = np.array([lowest_over_box(design) for design in designs])
        order = np.argsort(points[:, 0])
        front.plot(*points[order].T, ".-", color=color, markersize=10, label=name)
        stiffness, mode = points[order[-1]]
        _gantry_along_tracks(axes, designs[order[-1]], f"{stiffness:.1f} N/µm, {mode:.0f} Hz")
    for wall, name, color in (
        (0.003, "baseline, 3 mm", GRAY),
        (0.002, "its geometry, 2 mm", AMBER),
    ):
        point = lowest_over_box(baseline.with_values({"wall": wall}))
        front.plot(*point, "s", color=color, label=name)
    front.axvline(5.0, color=GRAY, linestyle=":", label="published machine, 5 N/µm")
    front.set(
        xlabel="lowest stiffness in the box [N/µm]", ylabel="lowest first mode in the box [Hz]"
    )
    front.legend(edgecolor="white", framealpha=1.0, loc="center left", bbox_to_anchor=(0.02, 0.6))
    return figure


def _gantry_along_tracks(axes: Axes, machine_file: tl.Mechanism, title: str) -> None:
    """Draw the tubes of a Gantry-Tau seen along its tracks, with the box of its tool."""
    model = tl.Model(machine_file)
    geometry = machine_geometry(model, model.assembly.q)
    rods = {rod.name for rod in machine_file.rods}
    colors = {"triple": BLUE, "pair": GREEN, "single": ORANGE}
    for segment, ends in zip(geometry.shape.segments, geometry.segments[0], strict=True):
        if segment.name in rods:
            color = colors[segment.name.partition(".")[0].rstrip("123")]
            axes.plot(ends[:, 1], ends[:, 2], "o-", color=color, linewidth=3, markersize=3)
    tool = -0.2
    axes.add_patch(
        Rectangle((-0.15, tool - 0.15), 0.3, 0.3, facecolor="#b7dfc9", edgecolor=GREEN, zorder=0)
    )
    axes.set(xlim=(-1.0, 1.0), ylim=(-0.45, 1.1), aspect="equal", title=title)
    axes.axis("off")


DRAWINGS: dict[str, Callable[[], Figure]] = {
    "five-bar-masses": five_bar_masses,
    "error-bars": error_bars,
    "drive-lines": drive_lines,
    "motion-laws": motion_laws,
    "singular-poses": singular_poses,
    "prove-a-workspace": proved_workspace,
    "from-a-task-to-a-machine": synthesized_delta,
    "calibration-directions": calibration_directions,
    "from-file-to-forces": from_file_to_forces,
    "loop-blocks": loop_blocks,
    "fastest-motion": plan_path,
    "cycles": cycles,
    "motors": motors,
    "tendons": tendons,
    "printer-bed": printer_bed,
    "load-cases": load_cases,
    "predictive-tracking": predictive_tracking,
    "actuator-map": actuator_map,
    "stiffness-map": stiffness_map,
    "front-of-tubes": front_of_tubes,
    "loaded-calibration": loaded_calibration,
}


def draw(names: list[str], folder: Path = PICTURES) -> None:
    """Draw the pictures into a folder."""
    with mpl.rc_context(DRAWN):
        for name in names:
            DRAWINGS[name]().savefig(folder / f"{name}.png", dpi=120, metadata={"Software": None})


if __name__ == "__main__":
    draw(sys.argv[1:] or list(DRAWINGS))
