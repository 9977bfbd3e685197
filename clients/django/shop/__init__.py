"""A small application: who orders what."""
