"""The metadata log: records and snapshots in the database, and the loader that follows them."""
