SELECT max("offset")
FROM metadata_snapshots
