"""The machine that the paper measured, an Intel iPSC/2, emulated so far that its evaluation can be run again."""
