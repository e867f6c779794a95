SELECT "offset", payload
FROM metadata_snapshots
ORDER BY "offset" DESC
LIMIT 1
