"""Printing of programs as C text."""
