SELECT producer_id, producer_epoch, last_timestamp, batches, coordinator_epoch
FROM inkless_producer_state
WHERE log_id = $1
