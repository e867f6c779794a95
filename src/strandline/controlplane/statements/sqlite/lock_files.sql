-- The transaction holds the only write lock already.
SELECT count(*)
FROM json_each($1)
