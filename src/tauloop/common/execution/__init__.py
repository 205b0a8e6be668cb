"""Execution of calculations: threads of BLAS, processes, interrupts, and reasons why they stop."""
