"""What the papers describe, as kernels to choose from; nothing of the encoder uses them."""
