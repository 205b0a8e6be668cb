"""Faults of the recording: channels without information, samples that jump, uneven or wrong times."""
