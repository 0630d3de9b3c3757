"""Commands on this machine: its checks and private servers."""
