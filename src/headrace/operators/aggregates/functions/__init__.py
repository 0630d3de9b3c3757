"""The computation of each aggregate function, one family in each file."""
