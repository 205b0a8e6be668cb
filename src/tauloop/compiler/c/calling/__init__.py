"""Compiling, caching, loading and calling of C code."""
