"""Calibration of a machine with part errors by two models, from measurements with a laser tracker.

The machine as built is simulated: lengths, joints and tracks have errors, so its platform tilts.
Every second pose is fitted, the others verify. The first model has one link per cluster and a
platform of constant orientation (eq. 1 of the paper): the tilt remains as its error. The second has
all links, and priors from the tolerances of the parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tauloop.common.result import diagnostic, plain, provenance
from tauloop_papers.reproduction import EXPERIMENTS, Progress, Reproduction
from tauloop_papers.tracker.fits import (
    ModelFit,
    Ranks,
    SizePoint,
    disagreement,
    full_fit,
    measured,
    planned_encoders,
    ranks_told,
    second_program,
    simple_fit,
    simple_problem,
    size_points,
)
from tauloop_papers.tracker.settings import SETTINGS, TrackerSettings
from tauloop_papers.tracker.table import choices, comparisons, printed

#: Largest difference of positions by the written machine and by the fit's equations, m.
AGREEMENT = 1e-9
#: Largest ratio of the full model's hold-out errors to those from noise and covariance: 264
#: readings scatter by 4 %, and three times this is allowed.
AS_EXPECTED = 1.13


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerCalibration(Reproduction):
    """The experiment's results.

    Attributes:
        settings: settings of the experiment.
        simple, full: the two models.
        second: errors (N_held, 3) of eq. 1 fitted to the same poses by another program, m.
        loose: the full model with priors that are only tight enough to keep the fit regular.
        sizes: results of the simple model for several sizes of part errors.
        ranks: identifiability of the full model.
        tilt: angle of the true platform from its nominal orientation at every pose (N,), rad.
        noise: noise of the tracker, m.
        part_errors: errors of the parameters of the machine as built, SI.
        encoders: actuator positions (N, n_u) at which the machine was measured, m.
    """

    settings: TrackerSettings
    simple: ModelFit
    full: ModelFit
    loose: ModelFit
    second: np.ndarray
    sizes: tuple[SizePoint, ...]
    ranks: Ranks
    tilt: np.ndarray
    noise: float
    part_errors: Mapping[str, float]
    encoders: np.ndarray


def run(progress: Progress, settings: TrackerSettings = SETTINGS) -> TrackerCalibration:
    """Measure, calibrate with both models, and compare.

    Raises:
        IdentificationError: no start of a fit converges.
    """
    rng = np.random.default_rng(settings.seed)
    progress("measuring the machine as built")
    encoders = planned_encoders(settings, rng)
    session = measured(settings, encoders, rng)
    progress("fitting one link per cluster")
    problem = simple_problem(settings, session)
    simple = simple_fit(settings, problem, session.true)
    second = second_program(settings, problem)
    progress("fitting all links")
    full = full_fit(settings, session)
    loose = full_fit(settings, session, looser=settings.loose_priors)
    progress("fitting one link per cluster at other sizes of part errors")
    sizes = size_points(settings, session)
    progress("computing which parameters can be determined")
    ranks = ranks_told(settings, session, rng)
    floor = full.rms / (full.expected or settings.noise)
    return TrackerCalibration(
        experiment=EXPERIMENTS["gantry-tau-calibration"],
        settings=settings,
        comparisons=comparisons(settings, session, simple, full, loose, sizes, ranks),
        choices=choices(settings, session, simple, sizes),
        printed=printed(simple, second, settings),
        simple=simple,
        full=full,
        loose=loose,
        second=second,
        sizes=sizes,
        ranks=ranks,
        tilt=session.tilt,
        noise=settings.noise,
        part_errors=session.errors,
        encoders=encoders,
        diagnostics=(
            diagnostic(
                "calibrated model run apart from the fit: difference of positions",
                disagreement(problem, simple),
                at_most=AGREEMENT,
                unit="m",
                advice="report this fault of Tauloop: the fit and the written machine disagree",
            ),
            diagnostic(
                "hold-out error of the full model over that of noise and covariance, RMS",
                floor,
                at_most=AS_EXPECTED,
                advice="try other starts or wider priors: the full model leaves more than noise",
            ),
        ),
        provenance=provenance(
            packages=("numpy", "scipy", "casadi"), options=plain(settings), inputs={}
        ),
    )
