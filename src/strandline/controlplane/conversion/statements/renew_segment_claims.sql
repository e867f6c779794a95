UPDATE inkless_tiering_segment
SET claim_expires_at_ms = $2
WHERE claimed_by = $1 AND state = 'UPLOADING'
