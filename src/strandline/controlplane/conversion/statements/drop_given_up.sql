DELETE FROM inkless_tiering_given_up
WHERE segment_id = $1
