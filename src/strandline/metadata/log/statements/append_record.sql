INSERT INTO metadata_records ("offset", controller_epoch, type, payload)
VALUES ($1, $2, $3, $4)
