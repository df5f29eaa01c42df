"""A small metadata project with real data, and what puts it into a folder."""
