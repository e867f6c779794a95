-- Bytes of the pipeline that may arrive late: locks nothing that is in use, creates a table.

-- Segments whose uploads were given up, or whose topics were deleted meanwhile. Their bytes are deleted once more when they
-- are due: a task that nobody waits for any more may have written some of them after the first deletion.
CREATE TABLE inkless_tiering_given_up (
    segment_id TEXT PRIMARY KEY,
    topic_id TEXT NOT NULL,
    topic_name TEXT NOT NULL,
    partition INTEGER NOT NULL,
    base_offset INTEGER NOT NULL,
    last_offset INTEGER NOT NULL,
    due_at_ms INTEGER NOT NULL
);

CREATE INDEX inkless_tiering_given_up_due ON inkless_tiering_given_up (due_at_ms);
