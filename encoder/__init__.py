"""The policy of the encoder: options, frame types, references, files, the pipeline, the Python API."""
