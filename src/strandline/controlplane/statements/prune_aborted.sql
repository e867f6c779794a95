DELETE FROM inkless_aborted_txn
WHERE log_id = $1 AND last_offset <= $2
