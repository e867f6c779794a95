-- Producers that committed at $1 or later, or have a transaction open, stay. Rows that a commit is writing are skipped: to
-- wait for them, with others locked already, could end in a deadlock.
DELETE FROM inkless_producer_state p
USING (
    SELECT s.log_id, s.producer_id
    FROM unnest($2::int[], $3::bigint[]) AS r(log_id, producer_id)
    JOIN inkless_producer_state s ON s.log_id = r.log_id AND s.producer_id = r.producer_id
    WHERE s.committed_at_ms < $1 AND s.txn_first_offset < 0
    FOR UPDATE OF s SKIP LOCKED
) AS silent
WHERE p.log_id = silent.log_id AND p.producer_id = silent.producer_id
