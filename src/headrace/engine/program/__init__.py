"""Programs: a plan compiled to flows, operators and their stages."""
