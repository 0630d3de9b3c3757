"""Files: the disk, maps into memory, replacement as a whole, pinned jars."""
