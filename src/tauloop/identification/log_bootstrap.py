"""Bootstrap of an identification: blocks of a log are drawn with replacement.

Each draw uses only the QR factors of the blocks.

Source: Künsch 1989, The jackknife and the bootstrap for general stationary observations (blocks);
Efron and Tibshirani 1993, An Introduction to the Bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path

import numpy as np

from tauloop.common.datasets import Variable
from tauloop.common.options import Options, option
from tauloop.common.records import dataclass
from tauloop.common.result import Result, content, diagnostic, provenance
from tauloop.identification.chosen import chosen_estimator
from tauloop.identification.estimation.estimators import CondensedEstimator
from tauloop.identification.folded_logs import require_foldable
from tauloop.identification.options import IdentificationOptions, LogSource
from tauloop.identification.regression.folding import LogTriangle, fold_log, identify_folded
from tauloop.identification.workflow import identification_model, log_data
from tauloop.model.model import MachineSource


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapOptions(Options):
    """Options of a bootstrap draw.

    Attributes:
        identification: options of the identification of the log.
        blocks: number of consecutive blocks of the fitted samples. A block must be longer than the
            correlation of the errors.
        draw: index of the draw, which is also its random seed; 0 uses the original log.

    Examples:
        >>> from tauloop.identification import BootstrapOptions
        >>> BootstrapOptions(draw=3).blocks
        40
    """

    identification: IdentificationOptions = field(default_factory=IdentificationOptions)
    blocks: int = option(40, least=2)
    draw: int = option(0, least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapDraw(Result):
    """Base parameters from drawn blocks.

    Attributes:
        values: values of the base parameters, by the name of the representing parameter, SI.
        deviations: standard deviations of the estimate from the whole log (not of this draw), from
            the known correlation of the errors, SI.
        drawn: number of times that each block was drawn.
    """

    values: Mapping[str, float]
    deviations: Mapping[str, float]
    drawn: tuple[int, ...]

    def variables(self) -> Iterator[Variable]:
        """Yield values and standard deviations over `parameter`, and counts over `block`."""
        yield Variable(name="parameter", values=tuple(self.values), over=("parameter",))
        yield Variable(
            name="value", values=tuple(self.values.values()), over=("parameter",), unit=None
        )
        deviations = tuple(self.deviations[name] for name in self.values)
        yield Variable(name="deviation", values=deviations, over=("parameter",), unit=None)
        yield Variable(name="drawn", values=self.drawn, over=("block",))


#: Cache of the QR factor of the last log, because consecutive draws usually use the same log. The
#: key contains the ids of machine and log; both are stored so that their ids remain unique.
_LAST_FACTOR: dict[str, tuple[LogTriangle, MachineSource, LogSource]] = {}


def bootstrap_log(
    machine: MachineSource, log: LogSource, options: BootstrapOptions | None = None
) -> BootstrapDraw:
    """Return the base parameters that are estimated from one bootstrap draw of a log's blocks.

    The base parameters, and all options that validation chooses, are those of the whole log, as in
    `identify`. For each draw, only the values are estimated again from the QR factors of the
    blocks, which takes milliseconds. `tauloop study` with the result `bootstrap` makes many draws.

    Args:
        machine: description of the machine, or its `identification_model`.
        log: path of a log file, or the loaded log.
        options: options of the draw.

    Raises:
        InputError, LogError, PoseError, IdentificationError: as for `fold_file`, and if there are
            fewer samples than blocks.
    """
    options = options or BootstrapOptions()
    log_options = options.identification
    require_foldable(log_options)
    estimator = chosen_estimator(log_options)
    assert isinstance(estimator, CondensedEstimator)
    log_key = log if isinstance(log, str | Path) else id(log)
    key = f"{id(machine)} {log_key} {options.blocks} {content(log_options)}"
    if key not in _LAST_FACTOR:
        model = identification_model(machine, log_options)
        data, *_ = log_data(model, log, log_options, may_choose=True)
        triangle = fold_log(data, share=log_options.share, blocks=options.blocks)
        _LAST_FACTOR.clear()
        _LAST_FACTOR[key] = triangle, machine, log
    whole, *_ = _LAST_FACTOR[key]
    folded = identify_folded(whole, estimator)
    drawn = np.ones(options.blocks, dtype=int)
    values = folded.estimate.values
    if options.draw:
        rng = np.random.default_rng(options.draw)
        drawn = rng.multinomial(options.blocks, np.full(options.blocks, 1.0 / options.blocks))
        stacked = np.repeat(whole.clusters, drawn, axis=0).transpose(1, 0, 2, 3)
        rows = stacked.reshape(len(stacked), -1, stacked.shape[-1])
        columns = [*folded.base.independent, len(whole.training.unknowns)]
        triangles = np.asarray(np.linalg.qr(rows[:, :, columns], mode="r"))
        values = estimator.estimate(triangles, whole.training.samples).values
    names = [parameter.representative for parameter in folded.base.base]
    deviations = folded.estimate.standard_deviations
    return BootstrapDraw(
        values=dict(zip(names, values.tolist(), strict=True)),
        deviations=dict(zip(names, deviations.tolist(), strict=True)),
        drawn=tuple(drawn.tolist()),
        diagnostics=(diagnostic("number of distinct blocks drawn", np.count_nonzero(drawn)),),
        provenance=provenance(
            options={"blocks": options.blocks, "draw": options.draw}, packages=("numpy", "scipy")
        ),
    )
