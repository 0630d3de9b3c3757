"""The text of an expression: tokens, grammar, syntax tree, and messages about mistakes."""
