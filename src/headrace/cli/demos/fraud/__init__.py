"""Card fraud: payments with planted fraud, five rules and a model, and the alerts of both."""
