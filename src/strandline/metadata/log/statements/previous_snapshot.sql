-- The newest but one: readers that are behind may still be using the records after it.
SELECT "offset"
FROM metadata_snapshots
ORDER BY "offset" DESC
LIMIT 1 OFFSET 1
