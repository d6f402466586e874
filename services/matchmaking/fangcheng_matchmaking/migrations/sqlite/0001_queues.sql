-- Whoever writes locks this row first: transactions happen one after the other, in every process.
CREATE TABLE heads (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    change INTEGER NOT NULL,
    number INTEGER NOT NULL
) STRICT;
INSERT INTO heads VALUES (1, 0, 0);

-- `record` is the ticket as JSON; the other columns are what is looked for.
CREATE TABLE tickets (
    number INTEGER PRIMARY KEY,
    ticket_id TEXT NOT NULL UNIQUE,
    player_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    pool_id TEXT NOT NULL,
    queued_ms INTEGER NOT NULL,
    state TEXT NOT NULL,
    match_id TEXT,
    table_id TEXT,
    change INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (player_id, request_id)
) STRICT;
CREATE INDEX live_tickets ON tickets (queued_ms)
    WHERE state IN ('waiting', 'matched', 'assigned');
CREATE INDEX past_tickets ON tickets (queued_ms)
    WHERE state NOT IN ('waiting', 'matched', 'assigned');
CREATE INDEX tickets_of_table ON tickets (table_id) WHERE state = 'assigned';
CREATE INDEX tickets_of_match ON tickets (match_id) WHERE match_id IS NOT NULL;
CREATE INDEX changed_tickets ON tickets (change);

-- One live ticket a player, of whatever party.
CREATE TABLE queued_players (
    player_id TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT;

CREATE TABLE matches (
    match_id TEXT PRIMARY KEY,
    pool_id TEXT NOT NULL,
    state TEXT NOT NULL,
    formed_ms INTEGER NOT NULL,
    table_id TEXT,
    record TEXT NOT NULL
) STRICT;
CREATE INDEX unfinished_matches ON matches (formed_ms)
    WHERE state NOT IN ('seated', 'returned');

CREATE INDEX matches_of_table ON matches (table_id) WHERE table_id IS NOT NULL;

-- How well a player plays a rule set, by his finished hands.
CREATE TABLE skills (
    player_id TEXT NOT NULL,
    rule_set TEXT NOT NULL,
    mu REAL NOT NULL,
    sigma REAL NOT NULL,
    hands INTEGER NOT NULL,
    PRIMARY KEY (player_id, rule_set)
) STRICT;

-- The newest hand of each table that skills are made of.
CREATE TABLE rated_tables (
    table_id TEXT PRIMARY KEY,
    hand_number INTEGER NOT NULL
) STRICT;

-- The newest finished hand that was looked at.
CREATE TABLE finished_hands (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    place TEXT NOT NULL
) STRICT;
INSERT INTO finished_hands VALUES (1, '');

-- The players whom a player met at the last table, as JSON.
CREATE TABLE met (
    player_id TEXT PRIMARY KEY,
    player_ids TEXT NOT NULL,
    time_ms INTEGER NOT NULL
) STRICT;

-- Who is not seated with whom; `origin` is 'player', who avoids, or 'operator', who bars a pair.
CREATE TABLE apart (
    player_id TEXT NOT NULL,
    other_id TEXT NOT NULL,
    origin TEXT NOT NULL,
    reason TEXT NOT NULL,
    case_id TEXT NOT NULL,
    time_ms INTEGER NOT NULL,
    PRIMARY KEY (player_id, other_id, origin)
) STRICT;

-- `record` is the room as JSON.
CREATE TABLE rooms (
    room_id TEXT PRIMARY KEY,
    code TEXT NOT NULL,
    opener_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    state TEXT NOT NULL,
    expires_ms INTEGER NOT NULL,
    change INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (opener_id, request_id)
) STRICT;
CREATE UNIQUE INDEX rooms_by_code ON rooms (code) WHERE state <> 'closed';
CREATE INDEX open_rooms ON rooms (expires_ms) WHERE state = 'open';
CREATE INDEX changed_rooms ON rooms (change);

CREATE TABLE leases (
    pool_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE pauses (
    pool_id TEXT PRIMARY KEY,
    closed INTEGER NOT NULL,
    reason TEXT NOT NULL,
    time_ms INTEGER NOT NULL
) STRICT;
