"""Runs what the pages tell a user to type."""
