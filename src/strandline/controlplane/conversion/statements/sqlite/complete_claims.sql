-- Nothing of WAL objects $3 is left to split. $1: claimant; $2: now.
INSERT INTO inkless_wal_file_claim (object_key, claimed_by, claimed_at_ms, claim_expires_at_ms, split_completed)
SELECT value->>0, $1, $2, $2, TRUE
FROM json_each($3)
WHERE TRUE
ON CONFLICT (object_key) DO UPDATE
SET split_completed = TRUE
