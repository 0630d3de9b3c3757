"""Schemas of records that come from elsewhere: values against a declared type, and codecs from bytes to columns."""
