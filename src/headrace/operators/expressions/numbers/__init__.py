"""Numbers: arithmetic, decimals, rounding, and Java's StrictMath."""
