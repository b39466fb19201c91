"""Both ends of a link, and a model of what is on its line."""
