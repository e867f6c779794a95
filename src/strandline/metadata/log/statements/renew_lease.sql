-- No row changes if another epoch has begun.
UPDATE controller_lease
SET expires_at_ms = {now_ms} + $2
WHERE id = 1 AND epoch = $1
