"""The tracker experiment as rows of stated and own figures, and as a list of choices."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tauloop_papers.reproduction import Comparison
from tauloop_papers.tracker.fits import ModelFit, Ranks, Session, SizePoint, Start
from tauloop_papers.tracker.settings import TrackerSettings


def _um(value: float) -> str:
    return f"{value * 1e6:.3g}"


def comparisons(
    settings: TrackerSettings,
    session: Session,
    simple: ModelFit,
    full: ModelFit,
    loose: ModelFit,
    sizes: tuple[SizePoint, ...],
    ranks: Ranks,
) -> tuple[Comparison, ...]:
    """Rows of "stated, ours, why they differ"."""
    stated = settings.stated
    noise = settings.noise
    notes = stated.ranks_by
    count = len(simple.after)
    drawn = float(np.sqrt(((full.true_after - full.after) ** 2).mean())) / noise
    return (
        Comparison(
            quantity=f"mean absolute position error, {count} hold-out poses, nominal geometry",
            unit="um",
            ours=_um(simple.mean(simple.before)),
            why="follows from the part errors, which the paper does not state",
        ),
        Comparison(
            quantity=f"the same after calibration of {simple.unknowns} parameters (eq. 1)",
            unit="um",
            stated=f"{_um(float(stated.error))} ({stated.error_by})",
            ours=_um(simple.mean(simple.after)),
            why="what is left is the tilt that eq. 1 leaves out: it grows with the part errors and the volume, our "
            f"choices; {stated.ranks_by}: {stated.small_errors}",
        ),
        Comparison(
            quantity="size of part errors at which that error is as stated",
            unit="mm",
            ours=_reached(sizes, stated.error),
            why=f"median of {len(sizes[0].errors)} draws; the error grows with the size",
        ),
        Comparison(
            quantity="tilt of the platform: mean, largest",
            unit="mrad",
            stated="0 (the model's assumption)",
            ours=f"{session.tilt.mean() * 1e3:.2f}, {session.tilt.max() * 1e3:.2f}",
            why="clusters with errors are no parallelograms",
        ),
        Comparison(
            quantity="start kept",
            ours=simple.kept,
            why="; ".join(_told(start) for start in simple.starts) + f". {_one_optimum(sizes)}",
        ),
        Comparison(
            quantity=f"{full.unknowns} parameters, all links, tolerance priors: mean absolute position error",
            unit="um",
            ours=_um(full.mean(full.after)),
            why=f"noise alone gives {_um(noise * np.sqrt(8 / np.pi))} (mean length of three components)",
        ),
        Comparison(
            quantity=f"{full.unknowns} parameters: start kept",
            ours=full.kept,
            why="; ".join(_told(start) for start in full.starts),
        ),
        Comparison(
            quantity="the same, RMS per component over the noise",
            ours=f"{full.rms / noise:.3f}",
            why=f"noise and covariance of the fit give {(full.expected or noise) / noise:.3f} on average, "
            f"the noise drawn on these poses alone {drawn:.3f}; eq. 1 gives {simple.rms / noise:.1f}",
        ),
        Comparison(
            quantity="the same against the true positions (no noise), mean",
            unit="um",
            ours=_um(full.mean(full.true_after)),
            why="what calibration leaves of the machine's error",
        ),
        Comparison(
            quantity=f"estimates less truth over tolerance, RMS of {full.unknowns}: nominal, fitted, "
            f"fitted with priors {settings.loose_priors:g} times looser",
            ours=f"{full.unfitted_error:.2f}, {full.parameter_error:.2f}, {loose.parameter_error:.3g}",
            why="without priors unobservable directions take any value, and positions hardly show it "
            f"({_um(loose.mean(loose.after))} um)",
        ),
        Comparison(
            quantity="rank with complete poses, nominal geometry",
            stated=f"{stated.rank_poses} ({notes})",
            ours=str(ranks.poses.rank),
            why="equal links of a cluster show only A - B",
        ),
        Comparison(
            quantity="rank with positions, nominal geometry",
            stated=f"{stated.rank_positions} ({notes})",
            ours=str(ranks.positions.rank),
        ),
        Comparison(
            quantity="rank with positions, errors of 1 mm and 1 mrad",
            stated=f"{stated.rank_with_errors} ({notes})",
            ours=str(ranks.positions.generic_rank),
            why=f"{len(ranks.positions.gauge)} gauge freedoms: {'; '.join(d.name for d in ranks.positions.gauge)} "
            f"(all B turn alike); with complete poses {len(ranks.poses.gauge)}",
        ),
        Comparison(
            quantity="directions seen, but with a standard deviation above 1 mm or mrad at this noise",
            stated=f"{stated.unobservable} ({notes})",
            ours=str(len(ranks.positions.weak)),
            why="practically unobservable, not gauge: a matter of noise, poses and layout, mended by priors; the next "
            "row has fewer poses in a smaller volume",
        ),
        Comparison(
            quantity=f"the same with {settings.poses // 2} poses in {_volume(settings.ranks_ranges)}",
            stated=f"{stated.unobservable} ({notes})",
            ours=str(len(ranks.narrow.weak)),
            why="the volume that the notes ask for, and as many poses as fit here: links turn less in it, and it is "
            "their turning that tells one parameter from another",
        ),
    )


def _volume(ranges: Mapping[str, tuple[float, float]]) -> str:
    return ", ".join(f"{name.rpartition('.')[2]} {low:g} to {high:g} m" for name, (low, high) in ranges.items())


def _reached(sizes: tuple[SizePoint, ...], error: float) -> str:
    """Size of part errors (mm) at which the median error reaches a value."""
    medians = [float(np.median(point.errors)) for point in sizes]
    if not medians[0] <= error <= medians[-1]:
        return f"outside {sizes[0].size * 1e3:g} to {sizes[-1].size * 1e3:g}"
    return f"{np.interp(error, medians, [point.size for point in sizes]) * 1e3:.2f}"


def _one_optimum(sizes: tuple[SizePoint, ...]) -> str:
    sizes_with_one = [f"{point.size * 1e3:g}" for point in sizes if point.is_one_optimum]
    more = [f"{point.size * 1e3:g}" for point in sizes if not point.is_one_optimum]
    text = (
        f"Both end at one optimum in all draws with part errors of {', '.join(sizes_with_one)} mm"
        if sizes_with_one
        else ""
    )
    return text + (f"; not with {', '.join(more)} mm" if more else "")


def _told(start: Start) -> str:
    if start.distance is None:
        return f"{start.name}: no start"
    cost = "no optimum" if start.cost is None else f"ends at a cost of {start.cost:.6g}"
    return f"{start.name}: {start.distance * 1e3:.3g} mm off, {cost}"


def choices(settings: TrackerSettings, session: Session) -> tuple[str, ...]:
    """What the paper leaves open and we chose."""
    spread = settings.part_errors
    sizes = ", ".join(f"{pattern} {deviation:g}" for pattern, deviation in spread.items())
    drawn = ", ".join(f"{name} {error * 1e6:+.0f}" for name, error in session.errors.items())
    volume = _volume(settings.limits.ranges or {})
    return (
        f"standard deviations of part errors (m, rad, 1): {sizes}; they are the priors of the full fit too",
        f"the part errors that were drawn (um, urad, 1e-6): {drawn}",
        f"tracker noise {settings.noise:g} m per component; encoders exact; tracker frame and target known",
        f"{settings.poses} poses spread over {volume}, seed {settings.seed}",
        "volume and seed were settled after others had been tried, which gave other errors: one draw of many",
        f"layout of the machine: {settings.machine} (its file says what was chosen)",
    )
