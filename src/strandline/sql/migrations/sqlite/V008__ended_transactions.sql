-- Which transactions of a producer have ended in a diskless log. Needs no short locks: a SQLite database belongs to one
-- process, which is starting.

-- When the newest transaction began that a marker has ended; -1 if that is not known. What belongs to it, or to an earlier
-- one, and comes late is refused.
ALTER TABLE inkless_producer_state ADD COLUMN txn_ended_ms INTEGER NOT NULL DEFAULT -1;
