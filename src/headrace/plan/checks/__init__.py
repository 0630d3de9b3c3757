"""Refusals and remarks of a plan, one function for each pitfall."""
