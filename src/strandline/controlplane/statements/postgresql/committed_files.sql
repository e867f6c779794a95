-- The time, which is the database's own unless $1 gives it, and those of the files that were committed before: always one
-- row at least.
SELECT t.now_ms, f.object_key, f.answers
FROM (SELECT coalesce($1::bigint, {now_ms}) AS now_ms) AS t
LEFT JOIN inkless_file f ON f.object_key = ANY ($2::text[])
