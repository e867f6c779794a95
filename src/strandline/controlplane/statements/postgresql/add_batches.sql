-- $1: now.
INSERT INTO inkless_batch (
    log_id, last_offset, base_offset, file_id, byte_offset, byte_size, timestamp_type, log_append_timestamp,
    max_timestamp, running_max_timestamp, leader_epoch
)
SELECT
    log_id, last_offset, base_offset, file_id, byte_offset, byte_size, timestamp_type, $1::bigint,
    max_timestamp, running_max_timestamp, leader_epoch
FROM unnest(
    $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::smallint[], $9::bigint[],
    $10::bigint[], $11::int[]
) AS b(
    log_id, last_offset, base_offset, file_id, byte_offset, byte_size, timestamp_type,
    max_timestamp, running_max_timestamp, leader_epoch
)
