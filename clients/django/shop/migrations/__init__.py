"""Made by the checks themselves with makemigrations' own code."""
