-- A WAL object, and whose claim it is at time $2, if anybody's.
SELECT f.file_id, CASE WHEN c.claim_expires_at_ms > $2 AND NOT c.split_completed THEN c.claimed_by END
FROM inkless_file f
LEFT JOIN inkless_wal_file_claim c ON c.object_key = f.object_key
WHERE f.object_key = $1 AND f.state = 'uploaded' AND f.format > 0
