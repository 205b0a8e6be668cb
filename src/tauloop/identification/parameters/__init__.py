"""What estimates say of a machine: known, essential and consistent parameters, beside the machine file's values."""
