"""Figures of an identification with a reduced model: forces, errors, and causes of the errors."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import tauloop as tl
from tauloop.display import FAINT, LARGE, MEASURED, NORMAL, PREDICTED, RESIDUAL, SMALL, TEXT, clean
from tauloop.viewer import Playback, View
from tauloop_papers.alike import of_same_parts
from tauloop_papers.reproduction import squared
from tauloop_papers.spidermill.models import Fit
from tauloop_papers.spidermill.results import Findings, ReducedIdentification
from tauloop_papers.spidermill.settings import PrintedErrors, ReducedSettings

#: Range of the relative errors in figures, %.
ERROR_RANGE = (1e-5, 200.0)
#: Captions of the figures.
CAPTIONS = {
    "figure-1": "As the paper's Figure 1: the machine in space with its 17 bodies and the ball screws, drawn from the "
    "model.",
    "figure-2": "As the paper's Figure 2: the planar model, in which parts behind each other are one body. It is "
    "the plant of the experiment.",
    "figure-4": "As the paper's Figure 4: the M-structure with its actuation, as `tauloop model reduce` makes it. "
    "Point "
    "masses are parts of its links; the slides are the platform's x and y.",
    "verification": "As the paper's Figure 6: active joints (a, b), spindle forces (c, d), relative errors (e, f) on "
    "the test trajectory, with the parameters of the full machine (dashed) and with the "
    "estimated ones (solid).",
    "identification": "As the paper's Figure 7: the same on the trajectory that the parameters were identified from.",
    "readout": "Not in the paper: the five values of Table 1. Forces leave all values of a bar open, "
    "but one given value determines the others of the family.",
    "causes": "Not in the paper: causes of the errors before and after, and the minimal parameters next to those "
    "printed.",
}
#: Figures of the paper without data.
UNDRAWN = {
    "Figure 3": "the derivation of the M-structure step by step; the steps are those of "
    "`tauloop model reduce`, and Figures 2 "
    "and 4 above are its start and end",
    "Figure 5": "the forces and moments on one link, which eqs. 2 and 3 name; Tauloop needs no diagram of them",
}

#: Captions of the films, and their pictures per second.
FILMS = {
    "identification": "The unreduced machine on the identification trajectory of Figure 7: spindles push, triangles "
    "and coupling elements keep the platform level. Drag to rotate it."
}
PICTURES = 20.0


def films(result: ReducedIdentification) -> dict[str, View]:
    """Return all motions of the experiment, by the suffix of their file names."""
    run = result.findings.identification.trajectory
    each = max(1, round(result.settings.frequency / PICTURES))
    model = tl.Model(tl.load(result.settings.machine))
    played = Playback(time=run.time[::each], q=model.platform.track(run.position).q[::each])
    return {"identification": tl.view(model, tl.ViewOptions(motion=played))}


def figures(identification: ReducedIdentification) -> dict[str, Figure]:
    """Return all figures of the experiment, by the suffix of their file names."""
    settings = identification.settings
    stated, results = settings.stated, identification.findings
    options = tl.ReductionOptions(
        massless_rods=settings.massless, share_parameters=True, seed=settings.seed
    )
    machine = tl.load(settings.machine)
    return {
        "figure-1": tl.view(of_same_parts(settings.spatial, machine)).picture(),
        "figure-2": tl.view(machine).picture(),
        "figure-4": tl.view(tl.reduce_model(machine, options).mechanism).picture(),
        "verification": _trajectory(results, results.verification, stated.verification, settings),
        "identification": _trajectory(
            results, results.identification, stated.identification, settings
        ),
        "causes": _causes(results, settings),
        "readout": _readout(results, settings),
    }


def _readout(findings: Findings, settings: ReducedSettings) -> Figure:
    """Draw the interval of every value of Table 1, and its values by us and in the paper."""
    read, printed = findings.read_out, settings.stated.estimated
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    figure.suptitle(
        "Values of Table 1 that the minimal parameters leave open", fontsize=LARGE, color=TEXT
    )
    known = read.stated.known
    for axes, name in zip(figure.subplots(1, len(printed)), printed, strict=True):
        clean(axes)
        free = read.unstated[name]
        stated = known[name][0] if name in known else read.stated[name].value
        if free.lower is not None and free.upper is not None:
            axes.bar(
                [0],
                [free.upper - free.lower],
                bottom=[free.lower],
                width=0.5,
                color=FAINT,
                label="all open values",
            )
        axes.plot([0], [free.file], "o", color=MEASURED, markersize=7, label="MSC.ADAMS, drawing")
        axes.plot(
            [0],
            [stated],
            "_",
            color=PREDICTED,
            markersize=22,
            markeredgewidth=2,
            label=f"ours, {settings.drawn} drawn",
        )
        axes.plot(
            [0],
            [printed[name]],
            "x",
            color=RESIDUAL,
            markersize=8,
            markeredgewidth=2,
            label="paper, estimated",
        )
        axes.set_xlim(-0.6, 0.6)
        axes.set_ylim(0.0, 1.2 * max(free.upper or 0.0, free.file or 0.0, printed[name]))
        axes.set_xticks([])
        axes.set_title(f"{name} [{squared(free.unit)}]", fontsize=NORMAL, color=TEXT)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False
    )
    return figure


def _trajectory(
    findings: Findings, fit: Fit, printed: PrintedErrors, settings: ReducedSettings
) -> Figure:
    """Draw joint angles, forces and relative errors of a trajectory, as in Figures 6 and 7."""
    figure = Figure(figsize=(10.0, 8.4), layout="constrained")
    axes = figure.subplots(3, 2, sharex=True, height_ratios=(0.8, 1.2, 1.2))
    used = "was identified" if fit is findings.identification else "was not identified"
    figure.suptitle(
        f"Reduced model on the {fit.trajectory.name} trajectory, from which it {used}",
        fontsize=LARGE,
        color=TEXT,
    )
    time = fit.trajectory.time
    for i, actuator in enumerate(findings.actuators):
        angle, force, error = axes[:, i]
        for panel in (angle, force, error):
            clean(panel)
        angle.plot(time, np.degrees(fit.trajectory.joints[:, i]), color=PREDICTED, linewidth=1.2)
        for letter, panel, what in zip(
            "ace" if i == 0 else "bdf",
            axes[:, i],
            ("active joint", "", "relative error"),
            strict=True,
        ):
            side = settings.actuators[i]
            title = (
                f"({letter}) {side.replace('spindle', what)}"
                if what
                else f"({letter}) {side} ({actuator})"
            )
            panel.set_title(title, fontsize=NORMAL, color=TEXT, loc="left")
        force.plot(
            time, fit.measured[:, i], color=MEASURED, linewidth=3.0, label="unreduced machine"
        )
        force.plot(
            time,
            fit.before[:, i],
            "--",
            color=RESIDUAL,
            linewidth=1.4,
            label="reduced, before identification",
        )
        force.plot(
            time, fit.after[:, i], "-", color=PREDICTED, linewidth=1.0, label="reduced, identified"
        )
        limit = settings.least_force * np.abs(fit.measured[:, i]).max()
        force.axhspan(
            -limit,
            limit,
            color=FAINT,
            alpha=0.45,
            linewidth=0,
            label=f"under {settings.least_force:.0%} of the largest",
        )
        bottom, top = force.get_ylim()
        force.set_ylim(bottom, top + 0.35 * (top - bottom))
        force.legend(fontsize=SMALL, frameon=False, loc="upper left", ncols=2)
        _relative(error, fit, printed, i)
    axes[0, 0].set_ylabel("active joint [deg]", fontsize=NORMAL, color=TEXT)
    axes[1, 0].set_ylabel("actuator force [N]", fontsize=NORMAL, color=TEXT)
    axes[2, 0].set_ylabel("|error| / |force| [%]", fontsize=NORMAL, color=TEXT)
    for panel in axes[2]:
        panel.set_xlabel("time [s]", fontsize=NORMAL, color=TEXT)
    return figure


def _relative(axes: Axes, fit: Fit, printed: PrintedErrors, i: int) -> None:
    """Draw relative errors before and after, with gaps at small forces."""
    time = fit.trajectory.time
    cases = (
        ("before", fit.before, printed.before[i], "--", RESIDUAL),
        ("identified", fit.after, printed.after[i], "-", PREDICTED),
    )
    for name, predicted, stated, style, color in cases:
        share = np.abs(predicted - fit.measured)[:, i] / np.abs(fit.measured[:, i])
        mean = 100 * fit.relative(predicted)[i]
        label = f"{name}: mean {mean:.3g} % (paper {stated:.2f} %)"
        shown = np.where(fit.counted[:, i], 100 * share, np.nan)
        axes.semilogy(time, shown, style, color=color, linewidth=1.2, label=label)
    axes.set_ylim(*ERROR_RANGE)
    axes.set_yticks([0.001, 0.01, 0.1, 1, 10, 100], ["0.001", "0.01", "0.1", "1", "10", "100"])
    axes.legend(
        fontsize=SMALL, facecolor="white", edgecolor="none", framealpha=0.85, loc="lower left"
    )


def _causes(findings: Findings, settings: ReducedSettings) -> Figure:
    """Draw the causes of the errors, and the minimal parameters next to the printed ones."""
    figure = Figure(figsize=(10.0, 7.2), layout="constrained")
    grid = figure.add_gridspec(2, 2)
    growth, stated = findings.growth, settings.stated
    masses = figure.add_subplot(grid[0, 0])
    _growth(
        masses,
        growth.factors,
        (growth.before_by_factor, growth.after_by_factor),
        (float(np.mean(stated.verification.before)), "paper, before: {:.1f} %"),
        f"masses of the {settings.parts}, as a multiple of those chosen",
        f"Before: the masses of the {settings.parts} (no offset)",
    )
    offsets = figure.add_subplot(grid[0, 1])
    _growth(
        offsets,
        1e3 * growth.sizes,
        (growth.before_by_size, growth.after_by_size),
        (float(np.mean(stated.verification.after)), "paper, after: {:.1f} %"),
        "offset of the contact points from the cranks' axes [mm]",
        "After: the offset of the contact points",
    )
    _minimal(figure.add_subplot(grid[1, 0]), findings)
    _rank(figure.add_subplot(grid[1, 1]), findings, stated.minimal)
    return figure


def _growth(
    axes: Axes,
    x: np.ndarray,
    errors: tuple[np.ndarray, np.ndarray],
    stated: tuple[float, str],
    label: str,
    title: str,
) -> None:
    clean(axes)
    for values, name, color in zip(
        errors, ("before", "identified"), (RESIDUAL, PREDICTED), strict=True
    ):
        mean = 100 * values.mean(axis=1)
        axes.plot(x, mean, marker=".", color=color, linewidth=1.3, label=f"{name} (mean of both)")
    value, text = stated
    axes.axhline(value, color=TEXT, linewidth=0.9, linestyle="--", label=text.format(value))
    axes.set_ylim(bottom=0)
    axes.set_xlabel(label, fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("mean |error| / |force|, verification [%]", fontsize=NORMAL, color=TEXT)
    axes.set_title(title, fontsize=NORMAL, color=TEXT, loc="left")
    axes.legend(fontsize=SMALL, frameon=False)


def _minimal(axes: Axes, findings: Findings) -> None:
    """Draw changes of the minimal parameters from those calculated for the machine."""
    clean(axes)
    names = [
        f"p{k + 1} [{squared(parameter.unit)}]"
        for k, parameter in enumerate(findings.regrouped.model.base)
    ]
    places = np.arange(len(names))
    cases = (
        ("identified here", findings.estimate.values, PREDICTED, -0.2),
        ("paper's estimates of Table 1", findings.printed, RESIDUAL, 0.2),
    )
    for name, values, color, shift in cases:
        changes = 100 * (values / findings.calculated - 1)
        bars = axes.bar(places + shift, changes, 0.38, color=color, label=name)
        axes.bar_label(
            bars, [f"{change:+.1f}" for change in changes], fontsize=SMALL, color=TEXT, padding=2
        )
    axes.axhline(0, color=TEXT, linewidth=0.6)
    axes.set_xticks(places, names)
    axes.margins(y=0.25)
    axes.set_ylabel("change by identification [%]", fontsize=NORMAL, color=TEXT)
    axes.set_title(
        "The minimal parameters against those calculated", fontsize=NORMAL, color=TEXT, loc="left"
    )
    base = findings.regrouped.model.base
    formulas = "\n".join(
        f"p{k + 1} = {squared(parameter.name)}" for k, parameter in enumerate(base)
    )
    axes.text(0.0, -0.16, formulas, transform=axes.transAxes, fontsize=SMALL, color=TEXT, va="top")
    axes.legend(fontsize=SMALL, frameon=False, loc="upper right")


def _rank(axes: Axes, findings: Findings, stated: int) -> None:
    clean(axes)
    cases = (
        (
            f"{len(findings.regrouped.model.parameters)} products",
            findings.regrouped.model.singular_values,
            PREDICTED,
            "o",
        ),
        (
            f"{len(findings.regrouped.printed.parameters)} parameters of the printed set",
            findings.regrouped.printed.singular_values,
            RESIDUAL,
            "s",
        ),
    )
    for name, values, color, marker in cases:
        sizes = np.maximum(values / values[0], 1e-17)
        axes.semilogy(
            np.arange(1, len(sizes) + 1),
            sizes,
            marker,
            linestyle="-",
            color=color,
            linewidth=0.8,
            markersize=5,
            markerfacecolor="none",
            label=name,
        )
    axes.set_xlabel("number", fontsize=NORMAL, color=TEXT)
    axes.set_ylabel("singular value, unit-norm columns", fontsize=NORMAL, color=TEXT)
    axes.set_title(
        f"{len(findings.regrouped.model.base)} parameters can be determined, {stated} in print",
        fontsize=NORMAL,
        color=TEXT,
        loc="left",
    )
    axes.legend(fontsize=SMALL, frameon=False)
