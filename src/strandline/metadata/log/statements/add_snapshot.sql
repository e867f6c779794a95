INSERT INTO metadata_snapshots ("offset", controller_epoch, record_count, created_at_ms, payload)
VALUES ($1, $2, $3, {now_ms}, $4)
ON CONFLICT ("offset") DO NOTHING
