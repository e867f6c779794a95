-- Logs that are locked.
UPDATE inkless_log l
SET log_start_offset = u.log_start_offset, tiered_log_start_offset = u.tiered_log_start_offset,
    tiered_high_offset = u.tiered_high_offset, migration_state = u.migration_state
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS u(
    log_id, log_start_offset, tiered_log_start_offset, tiered_high_offset, migration_state
)
WHERE l.log_id = u.log_id
