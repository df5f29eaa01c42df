"""The command line: one file a noun, everything imported when it is used."""
