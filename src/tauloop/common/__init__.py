"""Errors, results, options, files, progress and processes; knows no machine and imports no other
package.
"""
