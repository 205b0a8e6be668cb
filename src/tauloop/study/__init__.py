"""Studies: many samples of one calculation, computed on this machine or on a cluster.

A file specifies the varied inputs and the calculation (`load_study`). Sample i depends only on the
seed and on i. Therefore the number of workers and the batch size do not affect results, and an
interrupted study can be resumed. Results are stored as Parquet files.

Examples:
    >>> import tauloop as tl
    >>> text = "{format: tauloop-study/1, machine: delta, compute: {result: check}, keep: {n: mobility}}"
    >>> tl.study.loads_study(text).count
    1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.study.file import (
        Study as Study,
        load_study as load_study,
        loads_study as loads_study,
    )
    from tauloop.study.folder import StudyFolder as StudyFolder
    from tauloop.study.many_logs import (
        FoldedLogs as FoldedLogs,
        FoldOptions as FoldOptions,
        fold_logs as fold_logs,
    )
    from tauloop.study.pose_accuracy import (
        AccuracyOptions as AccuracyOptions,
        PoseErrors as PoseErrors,
        accuracy as accuracy,
    )
    from tauloop.study.reductions import ScalarSummary as ScalarSummary, StudyResult as StudyResult
    from tauloop.study.variations import VariedInput as VariedInput
    from tauloop.study.workflow import (
        StudyOptions as StudyOptions,
        read_results as read_results,
        run_study as run_study,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
