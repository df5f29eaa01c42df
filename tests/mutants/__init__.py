"""Small wrong versions of the production code, each of which some driver of the world must catch."""
