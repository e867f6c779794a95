"""Topics: created, changed and deleted, and described as a client can reach them."""
