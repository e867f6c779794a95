SELECT log_id
FROM inkless_log
WHERE topic_id = $1
ORDER BY log_id
{for_update}
