"""The host: links, recording, decoding, exports, the command line."""
