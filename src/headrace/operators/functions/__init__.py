"""How each aggregate function is computed, one family a file."""
