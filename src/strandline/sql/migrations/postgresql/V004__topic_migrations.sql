-- Topics that are switched from classic to diskless. Creates a table only: locks nothing that exists.
--
-- inkless_log.diskless_log_start_offset keeps its default of 0, although -1 means "unset": brokers of the version before,
-- which may still run, create logs without naming it.

-- A switch that was requested. Its row goes when the switch is finished; after it was aborted, a day later: until then a
-- broker that does not know it yet must not create the logs of the topic. Its position is never given twice.
CREATE TABLE inkless_migration (
    position BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    topic_id UUID NOT NULL UNIQUE,
    topic_name TEXT NOT NULL,
    partitions INTEGER NOT NULL,
    requested_at_ms BIGINT NOT NULL,
    sealed_at_ms BIGINT,
    aborted_at_ms BIGINT
);
