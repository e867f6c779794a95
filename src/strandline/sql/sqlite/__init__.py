"""The transactional store on SQLite, for a cluster of one broker."""
