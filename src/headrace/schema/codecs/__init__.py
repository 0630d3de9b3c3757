"""Codecs: many encoded records at once into columns of a declared schema; bad ones are told apart, never lost."""
