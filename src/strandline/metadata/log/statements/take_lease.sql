-- A new controller epoch. $4 is how long it lasts in ms without renewal; NULL: as long as the session.
UPDATE controller_lease
SET epoch = $1, node_id = $2, session_id = $3, expires_at_ms = {now_ms} + $4
WHERE id = 1
