"""Views in memory: followed from their topics, filtered, queried, subscribed to."""
