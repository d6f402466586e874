-- The operator log: lines are only ever added. What an operator is about to do is written before it is
-- done (`act`); when it is asked for again (`repeat`) and what came of it (`outcome`) are lines of their
-- own that name the act. What the console does by itself, such as a sign-in, is a `note`.
CREATE TABLE log (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time_us INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('act', 'repeat', 'outcome', 'note')),
    -- The line of the act that a repeat or an outcome belongs to.
    act INTEGER REFERENCES log (number),
    person TEXT NOT NULL CHECK (person <> '' OR kind = 'note'),
    verb TEXT NOT NULL CHECK (verb <> ''),
    -- What it is about; empty: not that.
    table_id TEXT NOT NULL,
    hand_number INTEGER NOT NULL,
    player_id TEXT NOT NULL,
    other_id TEXT NOT NULL,
    pool_id TEXT NOT NULL,
    settlement TEXT NOT NULL,
    link_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    case_id TEXT NOT NULL,
    -- One act for each, ever.
    request_id TEXT,
    -- Of an outcome. `unknown` may be followed by another outcome, the others are the last.
    status TEXT CHECK (status IN ('done', 'refused', 'unknown')),
    -- As JSON: of an act what was shown before and what is asked of the service; of an outcome what was
    -- answered; of a note whatever it says.
    detail TEXT NOT NULL,
    CHECK ((act IS NULL) = (kind IN ('act', 'note'))),
    CHECK ((request_id IS NULL) = (kind <> 'act')),
    CHECK ((status IS NULL) = (kind <> 'outcome'))
) STRICT;

CREATE UNIQUE INDEX log_requests ON log (request_id) WHERE kind = 'act';
CREATE UNIQUE INDEX log_last_outcomes ON log (act) WHERE status IN ('done', 'refused');
CREATE INDEX log_of_act ON log (act) WHERE act IS NOT NULL;
CREATE INDEX log_by_person ON log (person, number) WHERE kind IN ('act', 'note');
CREATE INDEX log_by_table_id ON log (table_id, number) WHERE kind IN ('act', 'note') AND table_id <> '';
CREATE INDEX log_by_player_id ON log (player_id, number) WHERE kind IN ('act', 'note') AND player_id <> '';
CREATE INDEX log_by_other_id ON log (other_id, number) WHERE kind IN ('act', 'note') AND other_id <> '';
CREATE INDEX log_by_pool_id ON log (pool_id, number) WHERE kind IN ('act', 'note') AND pool_id <> '';
CREATE INDEX log_by_settlement ON log (settlement, number) WHERE kind IN ('act', 'note') AND settlement <> '';
CREATE INDEX log_by_link_id ON log (link_id, number) WHERE kind IN ('act', 'note') AND link_id <> '';

CREATE TRIGGER log_stay BEFORE UPDATE ON log
BEGIN SELECT RAISE(ABORT, 'lines of the log are never changed'); END;
CREATE TRIGGER log_last BEFORE DELETE ON log
BEGIN SELECT RAISE(ABORT, 'lines of the log are never deleted'); END;
-- REPLACE deletes what is in its way, and no trigger hears of it.
CREATE TRIGGER log_adds BEFORE INSERT ON log BEGIN
    SELECT RAISE(ABORT, 'lines of the log are never replaced')
    WHERE EXISTS (SELECT 1 FROM log WHERE number = NEW.number);
    SELECT RAISE(IGNORE) WHERE NEW.kind = 'act' AND EXISTS (
        SELECT 1 FROM log WHERE kind = 'act' AND request_id = NEW.request_id
    );
    SELECT RAISE(IGNORE) WHERE NEW.status IN ('done', 'refused') AND EXISTS (
        SELECT 1 FROM log WHERE act = NEW.act AND status IN ('done', 'refused')
    );
END;
