-- Whether run $1 has claimed nothing since it had claimed $2 times, and has no claim at $3.
SELECT claimant
FROM inkless_split_run r
WHERE claimant = $1 AND claims = $2 AND NOT EXISTS (
    SELECT 1
    FROM inkless_wal_file_claim c
    WHERE c.claimed_by = r.claimant AND NOT c.split_completed AND c.claim_expires_at_ms + r.claim_ms > $3
)
{for_update}
