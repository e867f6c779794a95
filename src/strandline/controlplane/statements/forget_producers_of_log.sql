-- One page.
DELETE FROM inkless_producer_state
WHERE log_id = $1 AND producer_id IN (
    SELECT producer_id
    FROM inkless_producer_state
    WHERE log_id = $1
    ORDER BY producer_id
    LIMIT $2
)
