-- The next page of the log after an offset, and in each row where the log ends: in one statement, so that no append is
-- committed between the two.
SELECT "offset", type, payload, (SELECT max("offset") + 1 FROM metadata_records) AS log_end
FROM metadata_records
WHERE "offset" > $1
ORDER BY "offset"
LIMIT $2
