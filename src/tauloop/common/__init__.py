"""Errors, results, options, files, progress and processes.

This package knows no machine and imports no other package.
"""
