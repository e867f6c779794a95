-- Logs that are locked, and had no B0. They are empty: whatever lies below B0 is not in this database.
UPDATE inkless_log l
SET high_watermark = u.boundary, diskless_start_offset = u.boundary, diskless_log_start_offset = u.boundary,
    diskless_log_start_epoch = u.leader_epoch, last_epoch = u.leader_epoch, log_start_offset = u.log_start_offset,
    tiered_log_start_offset = u.tiered_log_start_offset, tiered_high_offset = u.tiered_high_offset,
    migration_state = u.migration_state, byte_size = 0, max_timestamp = -1,
    first_unstable_offset = -1, last_aborted_offset = -1
FROM unnest($1::int[], $2::bigint[], $3::int[], $4::bigint[], $5::bigint[], $6::bigint[], $7::text[]) AS u(
    log_id, boundary, leader_epoch, log_start_offset, tiered_log_start_offset, tiered_high_offset, migration_state
)
WHERE l.log_id = u.log_id
