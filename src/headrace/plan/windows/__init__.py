"""Windows as declared: kinds, calendar, processing time, and when they emit."""
