-- $1: claimant; $2: now; $3: until when; $4: keys. Returns those that are the claimant's now. Whoever claims one of them at
-- the same time is waited for.
INSERT INTO inkless_wal_file_claim (object_key, claimed_by, claimed_at_ms, claim_expires_at_ms)
SELECT object_key, $1, $2::bigint, $3::bigint
FROM unnest($4::text[]) AS k(object_key)
ORDER BY object_key
ON CONFLICT (object_key) DO UPDATE
SET claimed_by = excluded.claimed_by, claimed_at_ms = excluded.claimed_at_ms,
    claim_expires_at_ms = excluded.claim_expires_at_ms
WHERE NOT inkless_wal_file_claim.split_completed AND (
    inkless_wal_file_claim.claimed_by = excluded.claimed_by
    OR inkless_wal_file_claim.claim_expires_at_ms <= excluded.claimed_at_ms
)
RETURNING object_key
