"""Reading and writing of log files: CSV, Parquet, HDF5, MAT, ROS bags and MCAP."""
