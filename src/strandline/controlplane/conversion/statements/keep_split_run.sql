-- Claimant $1 has claimed WAL objects at $2, for $3 ms.
INSERT INTO inkless_split_run (claimant, claims, claim_ms, first_claim_at_ms)
VALUES ($1, 1, $3, $2)
ON CONFLICT (claimant) DO UPDATE
SET claims = inkless_split_run.claims + 1, claim_ms = excluded.claim_ms, looked_at_ms = NULL
