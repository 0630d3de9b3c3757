"""Card fraud: payments with planted fraud, four rules and a model, and the alerts of both."""
