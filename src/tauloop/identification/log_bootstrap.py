"""Bootstrap of an identification: blocks of a log drawn with replacement, from their triangles alone.

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
    """Which draw of which blocks.

    Attributes:
        identification: of the log.
        blocks: of the fitted samples, one behind the other; longer than errors remember.
        draw: number of the draw; 0 is the log as it is.

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
    """Base parameters from blocks that were drawn.

    Attributes:
        values: by the name of the parameter that represents them, SI.
        deviations: of the whole log, by the errors' known correlation, SI.
        drawn: how often each block is in it.
    """

    values: Mapping[str, float]
    deviations: Mapping[str, float]
    drawn: tuple[int, ...]

    def variables(self) -> Iterator[Variable]:
        """Values and deviations by `parameter`, counts by `block`."""
        yield Variable(name="parameter", values=tuple(self.values), over=("parameter",))
        yield Variable(
            name="value", values=tuple(self.values.values()), over=("parameter",), unit=None
        )
        deviations = tuple(self.deviations[name] for name in self.values)
        yield Variable(name="deviation", values=deviations, over=("parameter",), unit=None)
        yield Variable(name="drawn", values=self.drawn, over=("block",))


#: The triangle of the log that was drawn from last, by all that decides it: draws of one log come
#: one after the other.
_LAST: dict[str, tuple[LogTriangle, MachineSource, LogSource]] = {}


def bootstrap_log(
    machine: MachineSource, log: LogSource, options: BootstrapOptions | None = None
) -> BootstrapDraw:
    """Base parameters of one draw of a log's blocks.

    The base parameters are those of the whole log; of each draw only their values are estimated
    anew, from the blocks' triangles: milliseconds a draw. `tauloop study` with the result
    `bootstrap` makes many draws.

    Args:
        machine: its description, or `identification_model` of it.
        log: a file, or data.
        options: which draw.

    Raises:
        InputError, LogError, PoseError, IdentificationError: as `fold_file`; fewer samples than
            blocks.
    """
    options = options or BootstrapOptions()
    how = options.identification
    require_foldable(how)
    estimator = chosen_estimator(how)
    assert isinstance(estimator, CondensedEstimator)
    key = f"{id(machine)} {log if isinstance(log, str | Path) else id(log)} {options.blocks} {content(how)}"
    if key not in _LAST:
        data, *_ = log_data(identification_model(machine, how), log, how)
        _LAST.clear()
        # held: ids stay theirs
        _LAST[key] = fold_log(data, share=how.share, blocks=options.blocks), machine, log
    whole = _LAST[key][0]
    folded = identify_folded(whole, estimator)
    drawn = np.ones(options.blocks, dtype=int)
    values = folded.estimate.values
    if options.draw:
        rng = np.random.default_rng(options.draw)
        drawn = rng.multinomial(options.blocks, np.full(options.blocks, 1.0 / options.blocks))
        stacked = np.repeat(whole.clusters, drawn, axis=0).transpose(1, 0, 2, 3)
        rows = stacked.reshape(len(stacked), -1, stacked.shape[-1])
        chosen = [*folded.base.independent, len(whole.training.unknowns)]
        triangles = np.asarray(np.linalg.qr(rows[:, :, chosen], mode="r"))
        values = estimator.estimate(triangles, whole.training.samples).values
    names = [parameter.representative for parameter in folded.base.base]
    deviations = folded.estimate.standard_deviations
    return BootstrapDraw(
        values=dict(zip(names, values.tolist(), strict=True)),
        deviations=dict(zip(names, deviations.tolist(), strict=True)),
        drawn=tuple(drawn.tolist()),
        diagnostics=(diagnostic("blocks that were drawn", np.count_nonzero(drawn)),),
        provenance=provenance(
            options={"blocks": options.blocks, "draw": options.draw}, packages=("numpy", "scipy")
        ),
    )
