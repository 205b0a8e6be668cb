"""Figures and tables of results.

Examples:
    >>> import tauloop as tl
    >>> (axes, *_) = tl.simulate(tl.load("four_bar"), tl.SimulationOptions(duration=0.05)).plot()
    >>> axes.set_title("My fall").get_text()
    'My fall'
    >>> tl.display.save_figure(axes.figure, "fall.svg").name
    'fall.svg'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tauloop.common.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.display.figures import (
        FAINT as FAINT,
        LARGE as LARGE,
        MEASURED as MEASURED,
        NORMAL as NORMAL,
        PREDICTED as PREDICTED,
        RESIDUAL as RESIDUAL,
        SMALL as SMALL,
        TEXT as TEXT,
        clean as clean,
        save_figure as save_figure,
    )
    from tauloop.display.identification_figures import (
        identification_figure as identification_figure,
    )
    from tauloop.display.identification_tables import (
        fit_table as fit_table,
        identification_table as identification_table,
    )
    from tauloop.display.page_records import PageRecord as PageRecord, page_record as page_record
    from tauloop.display.parts import PARTS as PARTS, ReportPart as ReportPart, parts_of as parts_of
    from tauloop.display.pieces import (
        MotionScene as MotionScene,
        Picture as Picture,
        Piece as Piece,
        Plot as Plot,
        PlotTrace as PlotTrace,
        Rows as Rows,
        Words as Words,
        motion as motion,
        over_time as over_time,
        printed as printed,
        rounded as rounded,
        traces as traces,
    )
    from tauloop.display.plotting import plot as plot
    from tauloop.display.record_reading import read_record as read_record
    from tauloop.display.reduction_table import reduction_tables as reduction_tables
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
