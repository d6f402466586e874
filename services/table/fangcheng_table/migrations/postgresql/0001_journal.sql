-- The journal in PostgreSQL. Strings are compared by their bytes, whatever the database's collation.
CREATE TABLE tables (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_id text COLLATE "C" NOT NULL UNIQUE,
    request_id text COLLATE "C" NOT NULL UNIQUE,
    request text NOT NULL,
    rule_set text COLLATE "C" NOT NULL,
    revision integer NOT NULL,
    player_ids text NOT NULL,
    labels text NOT NULL,
    month integer NOT NULL,
    closed boolean NOT NULL DEFAULT false,
    summary bytea
);
CREATE INDEX tables_open ON tables (place) WHERE NOT closed;
CREATE INDEX tables_month ON tables (month);

-- Where a table stands and who plays it, apart from the rest: changed with every append.
CREATE TABLE heads (
    place bigint PRIMARY KEY REFERENCES tables,
    last_sequence integer NOT NULL,
    owner_id text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    done boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50);
CREATE INDEX heads_unfinished ON heads (place) WHERE NOT done;

CREATE TABLE players (
    player_id text COLLATE "C" NOT NULL,
    place bigint NOT NULL REFERENCES tables,
    PRIMARY KEY (player_id, place)
);
CREATE TABLE labels (
    key text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    place bigint NOT NULL REFERENCES tables,
    PRIMARY KEY (key, value, place)
);

-- A table's events are all in the partition of the month in which it was made, so that a place in
-- its sequence is taken once whatever the partitions are.
CREATE TABLE events (
    month integer NOT NULL,
    place bigint NOT NULL,
    sequence integer NOT NULL,
    time_ms bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (month, place, sequence)
) PARTITION BY LIST (month);

-- Months that were written to files and taken out, with the digest of each file.
CREATE TABLE archives (
    month integer PRIMARY KEY,
    tables bigint NOT NULL,
    events bigint NOT NULL,
    sha256 text NOT NULL
);

CREATE TABLE openings (
    place bigint PRIMARY KEY REFERENCES tables,
    sequence integer NOT NULL,
    state bytea NOT NULL
);

CREATE TABLE hands (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    table_place bigint NOT NULL REFERENCES tables,
    hand_number integer NOT NULL,
    player_ids text NOT NULL,
    ended_ms bigint NOT NULL,
    ending text NOT NULL,
    first_sequence integer NOT NULL,
    last_sequence integer NOT NULL,
    UNIQUE (table_place, hand_number)
);
CREATE INDEX hands_ended ON hands (ended_ms);
CREATE TABLE hand_players (
    player_id text COLLATE "C" NOT NULL,
    place bigint NOT NULL REFERENCES hands,
    PRIMARY KEY (player_id, place)
);

CREATE TABLE operator_actions (
    place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id text COLLATE "C" NOT NULL UNIQUE,
    table_place bigint NOT NULL REFERENCES tables,
    time_ms bigint NOT NULL,
    operator text NOT NULL,
    verb text NOT NULL,
    reason text NOT NULL,
    case_id text NOT NULL,
    detail text NOT NULL
);
CREATE INDEX operator_actions_of_table ON operator_actions (table_place, place);
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the log of operators is append-only';
END
$$;
CREATE TRIGGER operator_actions_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON operator_actions
    EXECUTE FUNCTION refuse();

CREATE TABLE owners (
    owner_id text COLLATE "C" PRIMARY KEY,
    endpoint text NOT NULL,
    until timestamptz NOT NULL
);
