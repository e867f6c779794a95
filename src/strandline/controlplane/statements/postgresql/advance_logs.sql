UPDATE inkless_log l
SET high_watermark = u.high_watermark, byte_size = l.byte_size + u.added_bytes, max_timestamp = u.max_timestamp
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::bigint[])
    AS u(log_id, high_watermark, added_bytes, max_timestamp)
WHERE l.log_id = u.log_id
