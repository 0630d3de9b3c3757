"""Commands on the job of an app: its run, its facts, its end."""
