"""Models of steps in plain Python: each is written from the documents, and shares nothing with the operators."""
