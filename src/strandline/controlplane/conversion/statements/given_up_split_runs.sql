-- At most $3 runs that have no claim at $1 and were not looked at after $2. An expired claim may still be renewed: it is
-- given up when it has not been for as long as it lasted.
SELECT claimant, claims, first_claim_at_ms, looked_at_ms IS NOT NULL
FROM inkless_split_run r
WHERE (looked_at_ms IS NULL OR looked_at_ms <= $2) AND NOT EXISTS (
    SELECT 1
    FROM inkless_wal_file_claim c
    WHERE c.claimed_by = r.claimant AND NOT c.split_completed AND c.claim_expires_at_ms + r.claim_ms > $1
)
ORDER BY claimant
LIMIT $3
