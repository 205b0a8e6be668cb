"""Reports: results as one HTML page that needs no network and no Python."""

from tauloop.common.lazy import public_names
from tauloop.viewer.pages.document import write_page as write_page
from tauloop.viewer.pages.showing import Demo as Demo, demo as demo
from tauloop.viewer.pages.workflow import (
    ReportOptions as ReportOptions,
    WrittenReport as WrittenReport,
    write_report as write_report,
)

__dir__, __all__ = public_names(__name__)
