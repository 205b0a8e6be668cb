"""``python -m tauloop_papers.dual_motor.film FILE.gif``: draw a step with one motor and two.

The rack, the cart and its pinions are drawn to scale. The play is too small to be seen at this
scale, so a magnifier for each pinion shows one of its teeth between two teeth of the rack.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import PIL.Image
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon, Rectangle

from tauloop.display import FAINT, MEASURED, NORMAL, PREDICTED, SMALL, TEXT
from tauloop.drives import Axis, DriveLine, Record, load_drive, record_axis
from tauloop_papers.dual_motor.search import LONG
from tauloop_papers.dual_motor.settings import SETTINGS

#: Durations of the slow part (the step) and of the fast part, s, with their numbers of pictures.
STEP_DURATION, STEP_PICTURES = 0.2, 24
LATER_DURATION, LATER_PICTURES = 20.0, 72
#: Time between two pictures, ms; number of colors of the file.
INTERVAL, PALETTE_SIZE = 90, 48
#: Samples of a record per second.
SAMPLES = 1000
#: Teeth of a pinion, and half the distance of the pinions divided by their radius.
TEETH, HALF_DISTANCE = 20, 1.3
#: Height of a tooth divided by the pitch, and its width at the root and at the tip.
TOOTH_HEIGHT, ROOT, TIP = 0.55, 0.5, 0.28
#: Width of the play in a magnifier, relative to that of the tooth.
MAGNIFIED_PLAY = 0.5
#: Limits of the plotted error, mm.
ERROR = 1.0
MOTORS = {"one": ("one motor", ("motor",)), "as-written": ("two motors", ("master", "slave"))}
STEEL, CART, RED = "#c9ced6", "#e8ebef", "#cc2f27"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The content of a film.

    Attributes:
        line: the axis.
        records: records of steps by the use of the motors.
        times: times of the pictures (n,), s.
    """

    line: DriveLine
    records: dict[str, Record]
    times: np.ndarray

    def at(self, motors: str, signal: str, time: float) -> float:
        """Return the value of a signal at a time."""
        record = self.records[motors]
        return float(np.interp(time, record.time, record.signal(signal)))


def story(line: DriveLine | None = None) -> Story:
    """Return the filmed steps.

    Args:
        line: the axis; the shipped one by default.
    """
    line = line or load_drive(SETTINGS.line)
    axis = Axis(line)
    records = {
        motors: record_axis(
            axis.with_motors(motors),
            duration=LATER_DURATION,
            samples=round(SAMPLES * LATER_DURATION) + 1,
            integrator=LONG,
        )
        for motors in MOTORS
    }
    slow = np.linspace(0.0, STEP_DURATION, STEP_PICTURES)
    quick = np.linspace(STEP_DURATION, LATER_DURATION, LATER_PICTURES + 1)[1:]
    return Story(line=line, records=records, times=np.concatenate([slow, quick]))


def picture(film: Story, time: float) -> Figure:
    """Return the picture of one time."""
    figure = Figure(figsize=(7.4, 4.9))
    for column, (motors, (title, names)) in enumerate(MOTORS.items()):
        left = 0.06 + 0.48 * column
        machine = figure.add_axes((left, 0.62, 0.44, 0.28))
        _machine(machine, film, motors, time)
        machine.set_title(title, fontsize=NORMAL + 1, color=TEXT, loc="left")
        for k, name in enumerate(names):
            width = 0.19
            start = (
                left
                + 0.22
                - (len(names) * width + (len(names) - 1) * 0.04) / 2
                + k * (width + 0.04)
            )
            _magnifier(figure.add_axes((start, 0.33, width, 0.22)), film, motors, k + 1, name, time)
        error = figure.add_axes((left, 0.09, 0.44, 0.2))
        _error(error, film, motors, time)
        if column:
            error.set_yticklabels([])
        else:
            error.set_ylabel("error [mm]", fontsize=SMALL, color=TEXT)
    pace = "slow" if time <= STEP_DURATION else "fast"
    figure.text(
        0.98,
        0.955,
        f"t = {time:6.2f} s ({pace})",
        fontsize=NORMAL,
        color=TEXT,
        ha="right",
        family="monospace",
    )
    return figure


def _machine(axes: Axes, film: Story, motors: str, time: float) -> None:
    """Draw rack, cart and pinions to scale, in meters."""
    radius = film.line.parameters.values["pinion_radius"]
    pitch = 2 * np.pi * radius / TEETH
    x = film.at(motors, "cart.position", time)
    half = HALF_DISTANCE * radius
    axes.set_xlim(-2.9 * radius, 4.9 * radius)
    axes.set_ylim(-1.75 * radius, 1.9 * radius)
    axes.set_aspect("equal", anchor="W")
    axes.axis("off")
    height = TOOTH_HEIGHT * pitch
    axes.add_patch(
        Rectangle(
            (-4 * radius, -1.7 * radius), 10 * radius, 0.7 * radius - height / 2, color=STEEL, lw=0
        )
    )
    for groove in np.arange(-np.ceil(3 * radius / pitch), np.ceil(5 * radius / pitch) + 1):
        axes.add_patch(_tooth((groove + 0.5) * pitch, -radius - height / 2, pitch, height, STEEL))
    reference = film.records[motors].reference
    axes.plot([reference] * 2, [0.75 * radius, 1.55 * radius], color=RED, lw=1.2, ls="--")
    axes.text(
        reference,
        1.6 * radius,
        "reference",
        fontsize=SMALL - 1,
        color=RED,
        ha="center",
        va="bottom",
    )
    axes.add_patch(
        Rectangle((x - 2.1 * radius, 0.0), 4.2 * radius, 0.7 * radius, fc=CART, ec=TEXT, lw=1.0)
    )
    axes.plot([x] * 2, [0.7 * radius, 1.0 * radius], color=TEXT, lw=1.2)
    count = len(MOTORS[motors][1])
    for k, place in zip(range(count), (-half, half) if count == 2 else (0.0,), strict=True):
        angle = film.at(motors, f"motor{k + 1}.position", time)
        # a tooth of the pinion points into a groove of the rack at the start
        _pinion(
            axes,
            (x + place, 0.0),
            radius,
            -angle + (place / radius),
            pitch,
            (PREDICTED, MEASURED)[k],
        )


def _tooth(x: float, y: float, pitch: float, height: float, color: str) -> Polygon:
    """Return a tooth of the rack with its root at y."""
    root, tip = ROOT * pitch / 2, TIP * pitch / 2
    corners = [(x - root, y), (x + root, y), (x + tip, y + height), (x - tip, y + height)]
    return Polygon(corners, color=color, lw=0)


def _pinion(
    axes: Axes, center: tuple[float, float], radius: float, angle: float, pitch: float, color: str
) -> None:
    """Draw a pinion at an angle."""
    height = TOOTH_HEIGHT * pitch
    inner, outer = radius - height / 2, radius + height / 2
    root, tip = ROOT * pitch / 2 / radius, TIP * pitch / 2 / radius
    corners = []
    for k in range(TEETH):
        middle = angle - np.pi / 2 + 2 * np.pi * k / TEETH
        for shift, distance in ((-root, inner), (-tip, outer), (tip, outer), (root, inner)):
            corners.append((middle + shift, distance))
    turned = np.array(corners)
    points = np.column_stack(
        [turned[:, 1] * np.cos(turned[:, 0]), turned[:, 1] * np.sin(turned[:, 0])]
    )
    axes.add_patch(Polygon(points + center, fc=color, ec="white", lw=0.5, alpha=0.9))
    mark = angle + np.pi / 2
    ends = (
        np.array([[0.0, 0.0], [0.75 * radius * np.cos(mark), 0.75 * radius * np.sin(mark)]])
        + center
    )
    axes.plot(*ends.T, color="white", lw=1.6)
    axes.add_patch(Circle(center, 0.12 * radius, color="white", lw=0))


def _magnifier(axes: Axes, film: Story, motors: str, number: int, name: str, time: float) -> None:
    """Draw a tooth of a pinion between two teeth of the rack, with enlarged play."""
    gap = film.line.parameters.values["gap"]
    force = film.at(motors, f"rack{number}.force", time)
    deflection = film.at(motors, f"rack{number}.deflection", time)
    # the pinion rolls on the rack below it: its tooth moves backwards as it drives the cart
    place = -float(np.clip(2 * deflection / gap, -1.0, 1.0)) * MAGNIFIED_PLAY / 2
    half = (1.0 + MAGNIFIED_PLAY) / 2
    pushes = np.sign(force) if abs(force) > 0.0 else 0.0
    axes.set_xlim(-1.5, 1.5)
    axes.set_ylim(-0.35, 1.15)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    axes.add_patch(Rectangle((-1.6, -0.5), 3.2, 0.5, color=STEEL, lw=0))
    for side in (-1, 1):
        is_pushed = pushes == -side
        lower, upper = side * half, side * (half + 0.22)
        axes.add_patch(
            Polygon(
                [(lower, 0), (upper, 0.8), (side * 1.6, 0.8), (side * 1.6, 0)], color=STEEL, lw=0
            )
        )
        axes.plot(
            [lower, upper], [0, 0.8], color=RED if is_pushed else TEXT, lw=3.5 if is_pushed else 1.0
        )
    color = (PREDICTED, MEASURED)[number - 1]
    tooth = np.array([(-0.5, 0.03), (0.5, 0.03), (0.7, 0.8), (0.7, 1.2), (-0.7, 1.2), (-0.7, 0.8)])
    axes.add_patch(Polygon(np.add(tooth, (place, 0.0)), color=color, lw=0))
    if pushes:
        axes.annotate(
            "",
            (place + 0.38 * pushes, 0.55),
            (place - 0.38 * pushes, 0.55),
            arrowprops={"arrowstyle": "-|>", "color": "white", "lw": 2.0},
        )
    words = f"pushes the cart: {force:+.0f} N" if pushes else "in the play: 0 N"
    axes.text(
        0.0, -0.19, f"{name} {words}", fontsize=SMALL - 2, color=TEXT, ha="center", va="center"
    )


def _error(axes: Axes, film: Story, motors: str, time: float) -> None:
    """Draw the error of the cart up to a time."""
    record = film.records[motors]
    error = 1e3 * (record.signal("cart.position") - record.reference)
    past = record.time <= time
    for spine in ("top", "right"):
        axes.spines[spine].set_visible(False)
    axes.axhline(0.0, color=FAINT, lw=0.8)
    axes.plot(record.time, error, color=FAINT, lw=1.0)
    axes.plot(record.time[past], error[past], color=TEXT, lw=1.4)
    axes.plot(time, np.clip(error[past][-1], -ERROR, ERROR), "o", color=RED, ms=5, clip_on=False)
    axes.set_xlim(0.0, LATER_DURATION)
    axes.set_ylim(-ERROR, ERROR)
    axes.set_yticks([-ERROR, 0.0, ERROR])
    axes.tick_params(labelsize=SMALL - 1)
    axes.set_xlabel("time [s]", fontsize=SMALL, color=TEXT, labelpad=1)


def frames(film: Story) -> Iterator[PIL.Image.Image]:
    """Yield all pictures of a film."""
    for time in film.times:
        drawn = io.BytesIO()
        picture(film, float(time)).savefig(drawn, format="png", dpi=100, facecolor="white")
        yield PIL.Image.open(drawn).convert("RGB")


def digest(line: DriveLine) -> str:
    """Return a hash of all values of a plant, which identifies it."""
    values = sorted(line.parameters.values.items())
    return hashlib.sha256(
        repr([(name, f"{value:.8g}") for name, value in values]).encode()
    ).hexdigest()


def save_film(path: Path, film: Story) -> None:
    """Write a film as a GIF whose comment identifies the plant."""
    drawn = list(frames(film))
    # the last picture has all colors, including those of the contacts
    palette = drawn[-1].quantize(PALETTE_SIZE)
    pictures = [image.quantize(palette=palette, dither=PIL.Image.Dither.NONE) for image in drawn]
    pictures[0].save(
        path,
        save_all=True,
        append_images=pictures[1:],
        duration=INTERVAL,
        loop=0,
        optimize=True,
        comment=digest(film.line).encode(),
    )


if __name__ == "__main__":
    save_film(Path(sys.argv[1]), story())
