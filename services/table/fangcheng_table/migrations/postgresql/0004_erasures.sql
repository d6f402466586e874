-- Players whose personal data is erased, by the request: a repeat finds that it was done, and goes on
-- with what was not. `labels` is a digest; what was erased is not kept here.
CREATE TABLE erasures (
    request_id text COLLATE "C" PRIMARY KEY,
    player_id text COLLATE "C" NOT NULL,
    labels text NOT NULL,
    keep_texts bigint NOT NULL,
    reason text NOT NULL,
    time_ms bigint NOT NULL,
    finished bigint NOT NULL
);
CREATE INDEX erasures_of_player ON erasures (player_id);

-- Of what operators did, the reason may go, and the profile of a player who was seated.
DROP TRIGGER operator_actions_stay ON operator_actions;
CREATE TRIGGER operator_actions_remain BEFORE DELETE OR TRUNCATE ON operator_actions
    EXECUTE FUNCTION refuse();
CREATE FUNCTION masked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.reason = '' THEN
        OLD.reason := '';
    END IF;
    IF OLD.verb = 'seat_player' THEN
        OLD.detail := NEW.detail;
    END IF;
    IF NEW IS DISTINCT FROM OLD THEN
        RAISE EXCEPTION 'the log of operators is append-only';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER operator_actions_stay BEFORE UPDATE ON operator_actions
    FOR EACH ROW EXECUTE FUNCTION masked();
