"""Several closed GOPs at once."""
