"""Logs in files: CSV, Parquet, HDF5, bags and MCAP, read and written."""
