"""Errors, results, options, files, progress and processes.

This package knows no machine and imports no other package.

Examples:
    >>> import tauloop as tl
    >>> issubclass(tl.common.errors.InputError, tl.TauloopError)
    True
"""
