SELECT object_key, state = 'uploaded'
FROM inkless_file
WHERE object_key = ANY ($1::text[])
