-- Players whose personal data is erased, by the request: a repeat finds that it was done, and goes on
-- with what was not. `labels` is a digest; what was erased is not kept here.
CREATE TABLE erasures (
    request_id TEXT PRIMARY KEY,
    player_id TEXT NOT NULL,
    labels TEXT NOT NULL,
    keep_texts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    finished INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX erasures_of_player ON erasures (player_id);

-- Of what operators did, the reason may go, and the profile of a player who was seated.
DROP TRIGGER operator_actions_stay;
CREATE TRIGGER operator_actions_stay BEFORE UPDATE ON operator_actions
WHEN NEW.place <> OLD.place OR NEW.action_id <> OLD.action_id OR NEW.table_place <> OLD.table_place
    OR NEW.time_ms <> OLD.time_ms OR NEW.operator <> OLD.operator OR NEW.verb <> OLD.verb
    OR NEW.case_id <> OLD.case_id OR NEW.reason NOT IN (OLD.reason, '')
    OR (NEW.detail <> OLD.detail AND OLD.verb <> 'seat_player')
BEGIN SELECT RAISE(ABORT, 'the log of operators is append-only'); END;
