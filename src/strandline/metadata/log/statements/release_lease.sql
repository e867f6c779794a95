-- Give the lease back at once; the epoch stays, so that the next one is higher.
UPDATE controller_lease
SET node_id = NULL, session_id = NULL, expires_at_ms = NULL
WHERE id = 1 AND epoch = $1
