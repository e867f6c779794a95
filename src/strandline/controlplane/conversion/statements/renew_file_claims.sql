UPDATE inkless_wal_file_claim
SET claim_expires_at_ms = $2
WHERE object_key IN (
    SELECT object_key
    FROM inkless_wal_file_claim
    WHERE claimed_by = $1 AND NOT split_completed
    ORDER BY object_key
    {for_update}
)
