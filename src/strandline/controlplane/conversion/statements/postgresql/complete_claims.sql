-- Nothing of WAL objects $3 is left to split. $1: claimant; $2: now.
INSERT INTO inkless_wal_file_claim (object_key, claimed_by, claimed_at_ms, claim_expires_at_ms, split_completed)
SELECT object_key, $1, $2::bigint, $2::bigint, TRUE
FROM unnest($3::text[]) AS k(object_key)
ORDER BY object_key
ON CONFLICT (object_key) DO UPDATE
SET split_completed = TRUE
