DELETE FROM inkless_tiering_segment
WHERE segment_id = $1
