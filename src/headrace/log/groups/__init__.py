"""Consumer groups: members, assignment, committed offsets."""
