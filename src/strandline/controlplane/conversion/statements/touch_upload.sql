-- A leader of epoch $2 has touched upload $1, which is locked.
UPDATE inkless_tiering_segment
SET leader_epoch = $2, state = $3, claim_expires_at_ms = $4, custom_metadata = $5
WHERE segment_id = $1
