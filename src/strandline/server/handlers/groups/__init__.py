"""Consumer and share groups: members, offsets, and groups as administrators see them."""
