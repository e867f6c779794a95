-- The time, which is the database's own unless $1 gives it, and those of the files that were committed before: always one
-- row at least.
SELECT json_group_array(json_array(t.now_ms, f.object_key, f.answers))
FROM (SELECT coalesce($1, {now_ms}) AS now_ms) AS t
LEFT JOIN (
    SELECT k.object_key, k.answers
    FROM json_each($2) AS r
    CROSS JOIN inkless_file k ON k.object_key = r.value->>0
) AS f
