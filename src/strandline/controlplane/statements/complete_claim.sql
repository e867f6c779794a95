-- Nothing of WAL object $1 is left to split. $2: claimant; $3: now.
INSERT INTO inkless_wal_file_claim (object_key, claimed_by, claimed_at_ms, claim_expires_at_ms, split_completed)
VALUES ($1, $2, $3, $3, TRUE)
ON CONFLICT (object_key) DO UPDATE
SET split_completed = TRUE
