"""Errors, results, options, files, progress and processes.

This package does not depend on the machine model and imports no other package of Tauloop.

Examples:
    >>> import tauloop as tl
    >>> issubclass(tl.common.errors.InputError, tl.TauloopError)
    True
"""
