-- The operator log: lines are only ever added. What an operator is about to do is written before it is
-- done (`act`); when it is asked for again (`repeat`) and what came of it (`outcome`) are lines of their
-- own that name the act. What the console does by itself, such as a sign-in, is a `note`.
CREATE TABLE log (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    time_us bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('act', 'repeat', 'outcome', 'note')),
    -- The line of the act that a repeat or an outcome belongs to.
    act bigint REFERENCES log (number),
    person text NOT NULL CHECK (person <> '' OR kind = 'note'),
    verb text NOT NULL CHECK (verb <> ''),
    -- What it is about; empty: not that.
    table_id text NOT NULL,
    hand_number bigint NOT NULL,
    player_id text NOT NULL,
    other_id text NOT NULL,
    pool_id text NOT NULL,
    settlement text NOT NULL,
    link_id text NOT NULL,
    reason text NOT NULL,
    case_id text NOT NULL,
    -- One act for each, ever.
    request_id text,
    -- Of an outcome. `unknown` may be followed by another outcome, the others are the last.
    status text CHECK (status IN ('done', 'refused', 'unknown')),
    -- As JSON: of an act what was shown before and what is asked of the service; of an outcome what was
    -- answered; of a note whatever it says.
    detail text NOT NULL,
    CHECK ((act IS NULL) = (kind IN ('act', 'note'))),
    CHECK ((request_id IS NULL) = (kind <> 'act')),
    CHECK ((status IS NULL) = (kind <> 'outcome'))
);

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

CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'lines of the log are never %',
        CASE TG_OP WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER log_stay BEFORE UPDATE OR DELETE ON log FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER log_whole BEFORE TRUNCATE ON log FOR EACH STATEMENT EXECUTE FUNCTION never();
