"""What the benchmarks compare: Pinocchio, MuJoCo, Drake and CasADi's own C, loops in Python, and Tauloop."""
