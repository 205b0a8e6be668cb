"""The fastest rate of a stroke that satisfies all limits of forces, cable tensions and speeds."""
