"""Short programs that use h264lite as anybody would."""
