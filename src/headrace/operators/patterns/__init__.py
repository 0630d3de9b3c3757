"""Pattern matching over columns: an automaton for many keys at once, and backtracking where conditions look at matched rows."""
