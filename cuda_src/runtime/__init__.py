"""The GPU from the host's side: context, streams, memory, modules, recordings."""
