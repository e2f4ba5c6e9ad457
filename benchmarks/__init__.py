"""Programs that measure; `papers` is also part of the installation."""
