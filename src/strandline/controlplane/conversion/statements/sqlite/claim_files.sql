-- $1: claimant; $2: now; $3: until when; $4: keys. Returns those that are the claimant's now.
INSERT INTO inkless_wal_file_claim (object_key, claimed_by, claimed_at_ms, claim_expires_at_ms)
SELECT value->>0, $1, $2, $3
FROM json_each($4)
WHERE TRUE
ON CONFLICT (object_key) DO UPDATE
SET claimed_by = excluded.claimed_by, claimed_at_ms = excluded.claimed_at_ms,
    claim_expires_at_ms = excluded.claim_expires_at_ms
WHERE NOT inkless_wal_file_claim.split_completed AND (
    inkless_wal_file_claim.claimed_by = excluded.claimed_by
    OR inkless_wal_file_claim.claim_expires_at_ms <= excluded.claimed_at_ms
)
RETURNING object_key
