"""What `bench_inverse_dynamics.py` compares: Pinocchio in C++, MuJoCo in C, their Python loops, and Tauloop itself."""
