-- The lease as it is now, without waiting for who is writing.
SELECT epoch, node_id, session_id, next_offset, expires_at_ms, {now_ms} AS now_ms
FROM controller_lease
WHERE id = 1
