"""Tables, plots and figures of results: as data, and their renderers for terminals and figures.

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

from tauloop.common.names.lazy import lazy_names

if TYPE_CHECKING:
    from tauloop.display.page_records import PageRecord as PageRecord, page_record as page_record
    from tauloop.display.palette import (
        FAINT as FAINT,
        LARGE as LARGE,
        MEASURED as MEASURED,
        NORMAL as NORMAL,
        PREDICTED as PREDICTED,
        RESIDUAL as RESIDUAL,
        SMALL as SMALL,
        TEXT as TEXT,
    )
    from tauloop.display.parts import PARTS as PARTS, ReportPart as ReportPart, parts_of as parts_of
    from tauloop.display.pieces import (
        MotionScene as MotionScene,
        Paragraph as Paragraph,
        Picture as Picture,
        Piece as Piece,
        Plot as Plot,
        PlotClass as PlotClass,
        PlotSpan as PlotSpan,
        PlotTrace as PlotTrace,
        Printed as Printed,
        PrintedPieces as PrintedPieces,
        Table as Table,
    )
    from tauloop.display.plots.building import (
        motion as motion,
        over_time as over_time,
        rounded as rounded,
        traces as traces,
    )
    from tauloop.display.record_reading import read_record as read_record
    from tauloop.display.renderers.figure_style import clean as clean, save_figure as save_figure
    from tauloop.display.renderers.matplotlib_renderer import (
        draw_plot as draw_plot,
        plots_figure as plots_figure,
    )
    from tauloop.display.renderers.panels import plot as plot
    from tauloop.display.renderers.result_figures import (
        identification_figure as identification_figure,
    )
    from tauloop.display.renderers.written_tables import (
        latex_table as latex_table,
        markdown_table as markdown_table,
    )
    from tauloop.display.tables.identification.identification_tables import (
        fit_table as fit_table,
        identification_table as identification_table,
    )
    from tauloop.display.tables.machines.reduction_tables import (
        reduction_tables as reduction_tables,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(__name__)
