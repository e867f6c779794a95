DELETE FROM inkless_wal_file_claim
WHERE claimed_by = $1 AND object_key = ANY ($2::text[]) AND NOT split_completed
