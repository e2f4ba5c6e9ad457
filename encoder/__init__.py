"""Policy: options, frame types, references, files, the pipeline, the command line."""
