"""A topic as a queue: messages, acknowledgement, redelivery, dead letters."""
