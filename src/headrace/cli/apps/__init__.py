"""Commands on an app as it is declared."""
