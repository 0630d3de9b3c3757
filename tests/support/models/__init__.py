"""What steps mean, in plain Python: each model is written from the documents, and shares nothing with the operators."""
