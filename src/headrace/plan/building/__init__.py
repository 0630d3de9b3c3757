"""The builder of plans: each function checks its arguments, derives columns and keys, and makes a node. Every front end uses it."""
