"""The switch of classic topics to diskless: what the leader of a partition does, and what is shown of it."""
