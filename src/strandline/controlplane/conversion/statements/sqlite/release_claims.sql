DELETE FROM inkless_wal_file_claim
WHERE claimed_by = $1 AND object_key IN (SELECT value->>0 FROM json_each($2)) AND NOT split_completed
