"""A simulated world in which the production code runs unchanged: see README.md beside this file."""
