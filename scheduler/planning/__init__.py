"""Which device takes which rows: time models, plans, routes."""
