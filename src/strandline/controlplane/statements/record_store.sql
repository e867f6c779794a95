INSERT INTO strandline_store (purpose, store_id, url)
VALUES ($1, $2, $3)
ON CONFLICT (purpose) DO NOTHING
