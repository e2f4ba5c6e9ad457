"""What is decided of a frame before it is coded."""
