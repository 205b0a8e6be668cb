"""What `compare_engines.py` compares: Pinocchio in C++, MuJoCo in C, their Python loops, and Tauloop itself."""
