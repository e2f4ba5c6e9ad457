"""Where and when stages run."""
