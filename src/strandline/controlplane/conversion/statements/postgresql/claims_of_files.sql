-- WAL objects with keys $2, and whose claim each is at time $1, if anybody's.
SELECT
    f.object_key, f.file_id,
    CASE WHEN c.claim_expires_at_ms > $1::bigint AND NOT c.split_completed THEN c.claimed_by END
FROM inkless_file f
LEFT JOIN inkless_wal_file_claim c ON c.object_key = f.object_key
WHERE f.object_key = ANY ($2::text[]) AND f.state = 'uploaded' AND f.format > 0
