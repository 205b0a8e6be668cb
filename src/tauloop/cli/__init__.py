"""Command line: ``tauloop machines | show | check | verify | dynamics | identify | schema``."""

from tauloop.cli.app import main

__all__ = ["main"]
