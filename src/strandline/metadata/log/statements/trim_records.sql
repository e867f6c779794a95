-- One page of what a snapshot has made superfluous.
DELETE FROM metadata_records
WHERE "offset" IN (SELECT "offset" FROM metadata_records WHERE "offset" <= $1 ORDER BY "offset" LIMIT $2)
