"""Consumer groups: their members, their committed offsets, and groups as administrators see them."""
