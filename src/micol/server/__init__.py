"""micol as a service: a REST API, Annif's API, and a page for people."""
