"""The fastest motion along a path under limits of forces, speeds, accelerations and rods."""
