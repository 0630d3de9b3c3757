"""Test support for users and for Headrace itself: real servers, a test driver, scenarios, conformance and chaos."""
