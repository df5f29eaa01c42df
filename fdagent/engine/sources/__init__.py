"""Where rows come from: files taken once each, CSV text, other entities' tables."""
