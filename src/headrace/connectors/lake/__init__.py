"""Tables as files, Parquet and Delta, as outputs of the engine: tasks stage an epoch, the driver commits it."""
