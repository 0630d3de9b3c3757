"""Codecs: many encoded records at once into columns of a declared schema; bad records are reported, never lost."""
