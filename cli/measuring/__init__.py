"""What tune and bench measure with."""
