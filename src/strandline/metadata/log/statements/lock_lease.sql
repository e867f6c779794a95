-- The lease, locked: the caller may append to the log, or take the lease over, until its transaction ends.
SELECT epoch, node_id, session_id, next_offset, expires_at_ms, {now_ms} AS now_ms
FROM controller_lease
WHERE id = 1
{for_update}
