"""Tables and paragraphs of results, as data; no module of this package imports Rich."""

from tauloop.display.pieces import (
    Column as Column,
    doubts as doubts,
    paragraphs as paragraphs,
    status_line as status_line,
    table as table,
)
