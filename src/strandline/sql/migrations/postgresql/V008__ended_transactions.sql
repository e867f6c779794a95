-- Which transactions of a producer have ended in a diskless log. Takes short locks on the table of producers, behind
-- which commits wait. It does not wait longer than two seconds for them: if a long transaction holds the table, the start
-- of the broker fails and can be repeated.

SET LOCAL lock_timeout = '2s';

-- When the newest transaction began that a marker has ended; -1 if that is not known. What belongs to it, or to an earlier
-- one, and comes late is refused.
ALTER TABLE inkless_producer_state
ADD COLUMN txn_ended_ms BIGINT NOT NULL DEFAULT -1;

SET LOCAL lock_timeout TO DEFAULT;
