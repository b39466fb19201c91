"""Stimuli played on virtual boards of many kinds."""
