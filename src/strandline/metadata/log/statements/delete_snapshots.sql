DELETE FROM metadata_snapshots
WHERE "offset" < $1
