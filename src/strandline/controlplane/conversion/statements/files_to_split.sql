-- The next $2 files behind file $1, and whether claimant $3 may split them at time $4. Split files have format -1.
SELECT
    f.file_id, f.object_key, f.size, f.committed_at_ms,
    f.state = 'uploaded' AND f.format > 0 AND (
        c.object_key IS NULL
        OR (NOT c.split_completed AND (c.claimed_by = $3 OR c.claim_expires_at_ms <= $4))
    )
FROM inkless_file f
LEFT JOIN inkless_wal_file_claim c ON c.object_key = f.object_key
WHERE f.file_id > $1
ORDER BY f.file_id
LIMIT $2
