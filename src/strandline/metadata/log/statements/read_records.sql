-- The next page of the log after an offset.
SELECT "offset", type, payload
FROM metadata_records
WHERE "offset" > $1
ORDER BY "offset"
LIMIT $2
