"""Identification from many logs that are read one by one: QR factor and scores of each log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, fields, replace
from typing import Any

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.errors import InputError, Problem, Problems
from tauloop.common.options import Options, option
from tauloop.common.plain import json_keys
from tauloop.common.records import dataclass
from tauloop.common.result import Result, diagnostic, provenance
from tauloop.formats.library import mechanism_of
from tauloop.identification.chosen import chosen_estimator
from tauloop.identification.estimation.clustered_errors import ClusteredErrors
from tauloop.identification.estimation.error_models import (
    AutocorrelatedErrors,
    ErrorModel,
    FilteredErrors,
)
from tauloop.identification.estimation.estimators import CondensedEstimator
from tauloop.identification.estimation.folded_timing import timing_arrays
from tauloop.identification.options import (
    IdentificationOptions,
    LogSource,
    refuse_combinations,
    texts_of,
)
from tauloop.identification.preparation.prepare import PreparedLogs
from tauloop.identification.regression.data import RegressionData
from tauloop.identification.regression.folded_scores import (
    ScoreDirections,
    noise_spread,
    residual_sums,
    score_spread,
    score_sums,
)
from tauloop.identification.regression.folding import fold_log, triangle_arrays
from tauloop.identification.workflow import fitted_log_data, identification_model, log_data
from tauloop.mechanism.description.units import parse_unit
from tauloop.mechanism.model import Mechanism
from tauloop.model.model import MachineSource


def _with_shapes(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    """Return arrays with their shapes, since some are empty."""
    return {name: {"shape": a.shape, "values": a.ravel()} for name, a in arrays.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedLog(Result):
    """The contribution of one log to an identification, as arrays by name.

    A log is *folded* if its samples are replaced by the triangular QR factor of its regression.

    Attributes:
        samples: number of samples of the prepared log.
        findings: problems of the log.
        arrays: arrays of the log's QR factor (`triangle_of`), or of its scores.
    """

    samples: int
    findings: tuple[Problem, ...]
    arrays: Mapping[str, np.ndarray] = field(metadata=json_keys(summary=_with_shapes))

    def variables(self) -> Iterator[Variable]:
        """Yield the arrays, each over its own axes."""
        for name, values in self.arrays.items():
            axes = tuple(f"{name}_{axis}" for axis in range(np.ndim(values)))
            yield Variable(name=name, values=values, over=axes, unit=None)


def arrays_of(data: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the arrays of a `FoldedLog` from its plain data."""
    return {
        name: np.array(entry["values"]).reshape(entry["shape"])
        for name, entry in data["arrays"].items()
    }


def require_foldable(options: IdentificationOptions) -> None:
    """Reject options that need the samples of all logs at once.

    Raises:
        InputError: lists each such option.
    """
    terms = options.terms
    need_all_samples = {
        "validation": options.validation,
        "commanded": options.commanded,
        "disconnected": options.disconnected,
        "compare_logs": options.compare_logs,
        "essential": options.essential,
        "regroup": options.regroup,
        "consistent": options.consistent,
        "payload_body": terms.payload_body,
        "presliding": terms.presliding,
        "gains": terms.gains,
        "scan_cutoffs": options.preparation.scan_cutoffs,
        "period": options.preparation.period,
    }
    problems = Problems()
    refuse_combinations(problems, need_all_samples, {"logs that are read one by one": True})
    if not isinstance(chosen_estimator(options), CondensedEstimator):
        problems.add(
            "estimator", f"{options.estimator} needs the samples of all logs", "use ols or wls"
        )
    InputError.raise_if_any(problems)


def fold_file(
    machine: MachineSource, log: LogSource, options: IdentificationOptions | None = None
) -> FoldedLog:
    """Return the QR factor of one log, which contains all that an identification needs.

    The log is prepared and checked for faults as if `identify` were called with this log only. This
    includes faults that require a fit, such as a late force. Delays and bending that the residuals
    do not show are stored too, so that their effect on the covariance can be added over all logs.

    Args:
        machine: description of the machine, or its `identification_model`.
        log: the log: a file, or a log in memory.
        options: options of the identification. If the log has measured velocities, state the source
            of velocity.

    Raises:
        InputError: options need all logs at once, or a source of velocity would be chosen for this
            log separately.
        LogError, PoseError, IdentificationError: as for `identify`.

    Examples:
        >>> import numpy as np, tauloop as tl
        >>> model = tl.Model(tl.load("four_bar"))
        >>> time = np.linspace(0.0, 4.0, 801)
        >>> angle = np.pi * np.sin(2.0 * time) + 0.5 * np.sin(7.0 * time)
        >>> speed = 2.0 * np.pi * np.cos(2.0 * time) + 3.5 * np.cos(7.0 * time)
        >>> rate = -4.0 * np.pi * np.sin(2.0 * time) - 24.5 * np.sin(7.0 * time)
        >>> motion = angle[:, None], speed[:, None], rate[:, None]
        >>> forces = model.actuators.inverse_dynamics(*motion).force
        >>> sensors = tl.logs.Sensors(resolution=[0.0], force_noise=[1e-3])
        >>> rng = np.random.default_rng(1)
        >>> log = tl.logs.measure(time, motion[0], forces, ["motor"], ["rad"], ["N m"], sensors, rng)
        >>> tl.identification.fold_file(model, log).samples
        801
    """
    options = options or IdentificationOptions()
    require_foldable(options)
    model = identification_model(machine, options)
    data, prepared, findings, fit = fitted_log_data(model, log, options)
    errors = _known_errors(prepared)
    correlation = errors.correlation if isinstance(errors, FilteredErrors) else None
    blocks = 0
    if isinstance(errors, ClusteredErrors):
        blocks = 1 if errors.by == "log" else errors.blocks
    triangle = fold_log(data, share=options.share, correlation=correlation, blocks=blocks)
    origin = _origin(mechanism_of(machine), options)
    arrays = triangle_arrays(replace(triangle, origin=origin))
    if isinstance(errors, AutocorrelatedErrors) and errors.lobe is not None:
        arrays["lobe"] = np.array(errors.lobe)
    if isinstance(errors, AutocorrelatedErrors) and fit is not None:
        arrays |= timing_arrays(fit)
    return _result(data, findings, arrays)


def _origin(machine: Mechanism, options: IdentificationOptions) -> dict[str, str]:
    """Return the properties that logs must have in common, as texts by name.

    These are the machine, its independent parameters, and the options that affect the QR factor.
    Masses and friction are left out if all of them are unknown, because an earlier identification
    may have updated their values in the machine file.
    """
    are_unknown = options.unknowns == "standard" and not options.terms.known
    origin = {"machine": machine.name}
    for parameter in machine.parameters:
        has_mass = bool(parameter.unit and parse_unit(parameter.unit).dimension.mass)
        if not (are_unknown and has_mass):
            origin[parameter.name] = f"{parameter.value!r}"
    for name, text in texts_of(options).items():
        if name not in ("data", "estimator"):
            origin[name] = f"{text}"
    return origin


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreOptions(Options):
    """Options of the second reading of a log, after the parameters of all logs are known.

    Attributes:
        identification: options with which the log was folded.
        directions: flattened arrays of `ScoreDirections`, by name.
        kernel: kernel of the errors' correlation. If it is empty, the sums that determine the
            kernel are returned.
        lags: number of lags for which products of residuals are also summed.
        correlation: correlation of the residuals, used in addition to the kernel; empty if the
            forces have not passed a filter of known length.
    """

    identification: IdentificationOptions = field(default_factory=IdentificationOptions)
    directions: Mapping[str, Any] = option(factory=dict, read=dict)
    kernel: tuple[float, ...] = option((), read=tuple)
    lags: int = option(0, least=0)
    correlation: tuple[float, ...] = option((), read=tuple)


def read_scores(machine: MachineSource, log: LogSource, options: ScoreOptions) -> FoldedLog:
    """Return the contribution of one log's correlated errors, for known parameters of all logs.

    Args:
        machine, log: as for `fold_file`.
        options: the parameters, and the kernel if it is known.

    Raises:
        InputError, LogError, PoseError, IdentificationError: as for `fold_file`.
    """
    flat = {name: np.array(values) for name, values in options.directions.items()}
    size = len(flat["values"])
    directions = ScoreDirections(**flat | {"sensitivity": flat["sensitivity"].reshape(size, size)})
    require_foldable(options.identification)
    model = identification_model(machine, options.identification)
    data, prepared, findings = log_data(model, log, options.identification)
    _known_errors(prepared)
    share = options.identification.share
    if options.kernel:
        arrays = {"spread": score_spread(data, directions, np.array(options.kernel), share)}
        if options.correlation:
            arrays["noise"] = noise_spread(data, directions, np.array(options.correlation), share)
    else:
        sums = score_sums(data, directions, share)
        arrays = {item.name: np.asarray(getattr(sums, item.name)) for item in fields(sums)}
        if options.lags:
            arrays["residuals"] = residual_sums(data, directions, options.lags, share)
    return _result(data, findings, arrays)


def _known_errors(prepared: PreparedLogs) -> ErrorModel:
    """Return the error model of a log; reject logs that would be treated differently from others.

    Raises:
        InputError: a source of velocity would be chosen for this log alone, or lags are given.
    """
    if prepared.channels.choice is not None:
        what = "has measured velocities, whose use would be chosen for each log separately"
        raise InputError.of(
            prepared.names[0],
            what,
            "choose one for all logs: velocity positions, measured or fused",
        )
    if isinstance(prepared.errors, AutocorrelatedErrors) and prepared.errors.lags is not None:
        raise InputError.of(
            "errors",
            "the number of lags cannot be set for logs that are read one by one",
            "omit it; the lags are then chosen from the data",
        )
    return prepared.errors


def _result(
    data: RegressionData, findings: tuple[Problem, ...], arrays: Mapping[str, np.ndarray]
) -> FoldedLog:
    """Return the `FoldedLog` of a log."""
    return FoldedLog(
        samples=len(data),
        findings=findings,
        arrays=arrays,
        diagnostics=(
            diagnostic(
                "faults of the log",
                len(findings),
                at_most=0.0,
                advice="see `findings` of the result, and follow their remedies",
            ),
        ),
        provenance=provenance(
            options={}, inputs={"samples": len(data)}, packages=("numpy", "scipy")
        ),
    )
