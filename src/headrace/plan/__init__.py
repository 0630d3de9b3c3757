"""Plans: what the user meant, as frozen declarations that check themselves and never act."""
