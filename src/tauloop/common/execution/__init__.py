"""Execution of calculations: BLAS threads, processes, interrupts, and stop reasons."""
