"""A metadata project as files: read, checked whole, named by a digest, promoted."""
