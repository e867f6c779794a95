-- $4: the id that is replaced. A store that holds objects is not, unless all of them are to be deleted.
UPDATE strandline_store
SET store_id = $2, url = $3
WHERE
    purpose = $1 AND store_id = $4
    AND (purpose <> 'diskless' OR NOT EXISTS (SELECT 1 FROM inkless_file WHERE state = 'uploaded'))
    AND (purpose <> 'remote' OR NOT EXISTS (
        SELECT 1 FROM inkless_log
        WHERE NOT is_deleted AND migration_state <> 'DISKLESS_ONLY' AND tiered_high_offset >= log_start_offset
    ))
