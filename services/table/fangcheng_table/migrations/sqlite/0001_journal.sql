-- The journal in SQLite.
CREATE TABLE tables (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id TEXT NOT NULL UNIQUE,
    request_id TEXT NOT NULL UNIQUE,
    request TEXT NOT NULL,
    rule_set TEXT NOT NULL,
    revision INTEGER NOT NULL,
    player_ids TEXT NOT NULL,
    labels TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    closed INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    summary BLOB
) STRICT;
CREATE INDEX tables_open ON tables (place) WHERE closed = 0;
CREATE INDEX tables_unfinished ON tables (place) WHERE done = 0;
CREATE TABLE players (
    player_id TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (player_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE labels (
    key TEXT NOT NULL, value TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (key, value, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE events (
    place INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (place, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE openings (
    place INTEGER PRIMARY KEY, sequence INTEGER NOT NULL, state BLOB NOT NULL
) STRICT;
CREATE TABLE hands (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    table_place INTEGER NOT NULL,
    hand_number INTEGER NOT NULL,
    player_ids TEXT NOT NULL,
    ended_ms INTEGER NOT NULL,
    ending TEXT NOT NULL,
    first_sequence INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    UNIQUE (table_place, hand_number)
) STRICT;
CREATE INDEX hands_ended ON hands (ended_ms);
CREATE TABLE hand_players (
    player_id TEXT NOT NULL, place INTEGER NOT NULL, PRIMARY KEY (player_id, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE operator_actions (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    action_id TEXT NOT NULL UNIQUE,
    table_place INTEGER NOT NULL,
    time_ms INTEGER NOT NULL,
    operator TEXT NOT NULL,
    verb TEXT NOT NULL,
    reason TEXT NOT NULL,
    case_id TEXT NOT NULL,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX operator_actions_of_table ON operator_actions (table_place, place);
CREATE TRIGGER operator_actions_stay BEFORE UPDATE ON operator_actions
BEGIN SELECT RAISE(ABORT, 'the log of operators is append-only'); END;
CREATE TRIGGER operator_actions_remain BEFORE DELETE ON operator_actions
BEGIN SELECT RAISE(ABORT, 'the log of operators is append-only'); END;
CREATE TABLE owners (
    owner_id TEXT PRIMARY KEY, endpoint TEXT NOT NULL, until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
