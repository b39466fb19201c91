"""Commands on a disk that fails."""
