SELECT DISTINCT topic_id
FROM inkless_log
