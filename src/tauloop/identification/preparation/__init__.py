"""How logs are prepared: filters and velocities by validation, averages over periods, the difference of two runs."""
