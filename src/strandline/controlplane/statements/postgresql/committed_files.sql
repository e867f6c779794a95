SELECT object_key, answers
FROM inkless_file
WHERE object_key = ANY ($1::text[])
