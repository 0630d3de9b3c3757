"""A directory of Parquet files as an output of the engine: tasks stage an epoch, the driver renames its file into place."""
