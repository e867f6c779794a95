-- How many of the first $2 partitions of topic $1 have a B0, and how many of its logs have none.
SELECT
    count(CASE WHEN diskless_log_start_offset >= 0 AND partition < $2 THEN 1 END),
    count(CASE WHEN diskless_log_start_offset < 0 THEN 1 END)
FROM inkless_log
WHERE topic_id = $1 AND NOT is_deleted
