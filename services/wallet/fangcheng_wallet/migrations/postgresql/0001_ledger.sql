-- The ledger in PostgreSQL. What must never happen is refused here, whatever the program above does:
-- postings and operations are only ever added; a posting continues its account without a gap and with
-- the right balance; no balance leaves its bounds, not even between two postings; the postings of an
-- operation add up to zero; time does not go back.
--
-- Hundreds of settlements are written by one statement, so what a row trigger would check row by row
-- is checked by statement triggers for all new rows at once. Accounts and the end of the ledger are
-- not written by the program at all: the triggers carry them on.

CREATE TABLE players (
    player_id text PRIMARY KEY CHECK (player_id <> ''),
    opened_us bigint NOT NULL,
    frozen boolean NOT NULL DEFAULT false,
    reason text NOT NULL DEFAULT '',
    case_id text NOT NULL DEFAULT '',
    changed_us bigint
);

-- Room in every page for the next version of its rows: a balance changes in place.
CREATE TABLE accounts (
    id bigint PRIMARY KEY,
    kind text NOT NULL CHECK (kind IN ('player', 'hold', 'house', 'external', 'receivable')),
    owner text NOT NULL CHECK ((owner = '') = (kind IN ('house', 'external'))),
    -- Whose money it is: the owner, or the player of a hold.
    player_id text NOT NULL CHECK (kind = 'hold' OR player_id = owner),
    currency text NOT NULL CHECK (currency <> ''),
    book text NOT NULL,
    floor bigint NOT NULL CHECK (floor BETWEEN -9007199254740992 AND 0),
    balance bigint NOT NULL DEFAULT 0 CHECK (
        balance BETWEEN floor AND CASE kind WHEN 'receivable' THEN 0 ELSE 9007199254740992 END
    ),
    version bigint NOT NULL DEFAULT 0 CHECK (version >= 0),
    UNIQUE (owner, kind, currency, book)
) WITH (fillfactor = 50);

CREATE INDEX accounts_of_player ON accounts (player_id);

-- What happened, in order. `body` is what the caller sent, `answer` what it was answered, both as
-- canonical JSON. The postings first_posting..last_posting are this operation's, and only they are.
CREATE TABLE operations (
    id bigint PRIMARY KEY,
    verb text NOT NULL CHECK (
        verb IN (
            'deposit', 'withdraw', 'place_holds', 'top_up_hold', 'hand_over', 'extend_holds',
            'release_holds', 'expire_hold', 'settle', 'reverse', 'freeze'
        )
    ),
    key text CHECK (
        (key IS NULL)
        = (verb IN ('hand_over', 'extend_holds', 'release_holds', 'expire_hold'))
    ),
    time_us bigint NOT NULL,
    body text NOT NULL,
    answer text NOT NULL,
    first_posting bigint NOT NULL,
    last_posting bigint NOT NULL CHECK (last_posting >= first_posting - 1),
    -- Of the settlement that this is, or reverses; NULL: none.
    labels jsonb,
    UNIQUE (key, verb)
);

CREATE INDEX operations_at ON operations (time_us);

-- Partitioned by month (UTC); the wallet makes the partitions.
CREATE TABLE postings (
    id bigint NOT NULL,
    account bigint NOT NULL,
    version bigint NOT NULL,
    operation bigint NOT NULL,
    amount bigint NOT NULL
        CHECK (amount <> 0 AND amount BETWEEN -9007199254740992 AND 9007199254740992),
    balance_after bigint NOT NULL
        CHECK (balance_after BETWEEN -9007199254740992 AND 9007199254740992),
    reason text NOT NULL,
    reference text NOT NULL,
    memo text NOT NULL,
    time_us bigint NOT NULL,
    PRIMARY KEY (id, time_us)
) PARTITION BY RANGE (time_us);

CREATE INDEX postings_of_account ON postings (account, id);

CREATE TABLE holds (
    hold_id text PRIMARY KEY,
    account bigint NOT NULL UNIQUE REFERENCES accounts (id),
    player_id text NOT NULL REFERENCES players (player_id),
    amount bigint NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740992),
    state text NOT NULL CHECK (state IN ('open', 'released', 'expired')),
    table_id text NOT NULL,
    expires_at_us bigint,
    given_back bigint NOT NULL CHECK (given_back BETWEEN 0 AND amount),
    placed_by bigint NOT NULL,
    -- The operation that changed the row last; what remains of a hold is in its account.
    changed_by bigint NOT NULL
);

CREATE INDEX open_holds ON holds (player_id) WHERE state = 'open';
CREATE INDEX holds_expiring ON holds (expires_at_us) WHERE state = 'open';

-- Where the ledger ends: one row, which every writer locks before it reads anything. So writers take
-- turns, whatever accounts they touch: there is no order in which two could wait for each other.
CREATE TABLE head (
    id boolean PRIMARY KEY DEFAULT true CHECK (id),
    operation bigint NOT NULL,
    posting bigint NOT NULL,
    time_us bigint NOT NULL
) WITH (fillfactor = 10);

INSERT INTO head VALUES (true, 0, 0, 0);

CREATE FUNCTION postings_carry() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed bigint;
    wanted bigint;
BEGIN
    -- The new postings of each account make a run, which is sorted once.
    WITH one AS (
        SELECT
            account,
            version,
            balance_after,
            first_value(version) OVER run AS first_version,
            first_value(balance_after - amount) OVER run AS before,
            version - lag(version, 1, version - 1) OVER run <> 1
                OR balance_after - amount
                    <> lag(balance_after, 1, balance_after - amount) OVER run AS broken,
            lead(version) OVER run IS NULL AS is_last
        FROM fresh WINDOW run AS (PARTITION BY account ORDER BY id)
    ),
    whole AS (
        SELECT
            account,
            max(version) FILTER (WHERE is_last) AS version,
            max(balance_after) FILTER (WHERE is_last) AS balance,
            min(first_version) AS first_version,
            min(before) AS before,
            min(balance_after) AS least,
            bool_or(broken) AS broken
        FROM one GROUP BY account
    )
    UPDATE accounts SET balance = whole.balance, version = whole.version
    FROM whole
    WHERE accounts.id = whole.account
        AND NOT whole.broken
        AND accounts.version = whole.first_version - 1
        AND accounts.balance = whole.before
        AND whole.least >= accounts.floor;
    GET DIAGNOSTICS changed = ROW_COUNT;
    SELECT count(DISTINCT account) INTO wanted FROM fresh;
    IF changed <> wanted THEN
        RAISE EXCEPTION 'a posting must continue its account, within its bounds'
            USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (
        SELECT FROM fresh JOIN accounts ON accounts.id = fresh.account
        GROUP BY operation, currency, book HAVING sum(amount) <> 0
    ) THEN
        RAISE EXCEPTION 'an operation must add up to zero' USING ERRCODE = 'check_violation';
    END IF;
    IF EXISTS (
        SELECT FROM (
            SELECT
                operation,
                min(id) AS first,
                max(id) AS last,
                min(time_us) AS earliest,
                max(time_us) AS latest
            FROM fresh GROUP BY operation
        ) AS one
        LEFT JOIN operations ON operations.id = one.operation
        WHERE operations.id IS NULL
            OR one.first < first_posting OR one.last > last_posting
            OR one.earliest <> time_us OR one.latest <> time_us
    ) THEN
        RAISE EXCEPTION 'a posting lies in its operation, and has its time'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER postings_carry AFTER INSERT ON postings
REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION postings_carry();

CREATE FUNCTION operations_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    first record;
    final record;
    there bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM fresh) THEN
        RETURN NULL;
    END IF;
    IF EXISTS (
        SELECT FROM (
            SELECT
                id - lag(id) OVER w AS step,
                first_posting - lag(last_posting) OVER w AS next,
                time_us - lag(time_us) OVER w AS passed
            FROM fresh WINDOW w AS (ORDER BY id)
        ) AS one
        WHERE step <> 1 OR next <> 1 OR passed < 0
    ) THEN
        RAISE EXCEPTION 'an operation must follow the one before'
            USING ERRCODE = 'check_violation';
    END IF;
    SELECT * INTO first FROM fresh ORDER BY id LIMIT 1;
    SELECT * INTO final FROM fresh ORDER BY id DESC LIMIT 1;
    SELECT count(*) INTO there FROM postings
    WHERE id BETWEEN first.first_posting AND final.last_posting
        AND time_us BETWEEN first.time_us AND final.time_us;
    IF there <> final.last_posting - first.first_posting + 1 THEN
        RAISE EXCEPTION 'an operation must have its postings' USING ERRCODE = 'check_violation';
    END IF;
    UPDATE head SET operation = final.id, posting = final.last_posting, time_us = final.time_us
    WHERE operation = first.id - 1 AND posting = first.first_posting - 1
        AND time_us <= first.time_us;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an operation must follow the one before, and time must not go back'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER operations_follow AFTER INSERT ON operations
REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION operations_follow();

-- Only the two functions above change accounts and the head.
CREATE FUNCTION carried() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF pg_trigger_depth() < 2 THEN
        RAISE EXCEPTION '% follow the postings', TG_TABLE_NAME USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER accounts_follow BEFORE UPDATE OF balance, version ON accounts
FOR EACH STATEMENT EXECUTE FUNCTION carried();
CREATE TRIGGER head_follows BEFORE UPDATE ON head
FOR EACH STATEMENT EXECUTE FUNCTION carried();

CREATE FUNCTION accounts_begin() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'an account begins at nothing' USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER accounts_begin BEFORE INSERT ON accounts
FOR EACH ROW WHEN (NEW.balance <> 0 OR NEW.version <> 0) EXECUTE FUNCTION accounts_begin();

CREATE FUNCTION holds_place() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'open' OR NEW.changed_by <> NEW.placed_by
        OR NOT EXISTS (
            SELECT FROM postings
            WHERE account = NEW.account AND operation = NEW.placed_by
                AND version = 1 AND amount = NEW.amount
        )
    THEN
        RAISE EXCEPTION 'a hold is placed by its operation, full' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER holds_place AFTER INSERT ON holds
FOR EACH ROW EXECUTE FUNCTION holds_place();

CREATE FUNCTION holds_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.state <> 'open' AND (
        NEW.state <> OLD.state OR NEW.amount <> OLD.amount OR NEW.table_id <> OLD.table_id
        OR NEW.expires_at_us IS DISTINCT FROM OLD.expires_at_us OR NEW.given_back > OLD.given_back
    ) THEN
        RAISE EXCEPTION 'of a hold that is over, only what it gave back is used up'
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.changed_by <= OLD.changed_by
        OR NEW.hold_id <> OLD.hold_id OR NEW.account <> OLD.account
        OR NEW.player_id <> OLD.player_id OR NEW.placed_by <> OLD.placed_by
        OR NEW.amount < OLD.amount OR OLD.table_id NOT IN ('', NEW.table_id)
        OR NOT EXISTS (SELECT FROM operations WHERE id = NEW.changed_by)
    THEN
        RAISE EXCEPTION 'a hold keeps its owner and its table, and is changed by an operation'
            USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.state <> 'open' AND (SELECT balance FROM accounts WHERE id = NEW.account) <> 0 THEN
        RAISE EXCEPTION 'a hold that is over is empty' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER holds_change AFTER UPDATE ON holds
FOR EACH ROW EXECUTE FUNCTION holds_change();

CREATE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'rows of % are never % this way', TG_TABLE_NAME,
        CASE TG_OP WHEN 'UPDATE' THEN 'changed' ELSE 'deleted' END
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER accounts_stay BEFORE UPDATE OF id, kind, owner, player_id, currency, book ON accounts
FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER accounts_last BEFORE DELETE ON accounts FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER accounts_whole BEFORE TRUNCATE ON accounts FOR EACH STATEMENT EXECUTE FUNCTION never();
CREATE TRIGGER players_stay BEFORE UPDATE OF player_id, opened_us ON players
FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER players_last BEFORE DELETE ON players FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER players_whole BEFORE TRUNCATE ON players FOR EACH STATEMENT EXECUTE FUNCTION never();
CREATE TRIGGER operations_stay BEFORE UPDATE OR DELETE ON operations
FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER operations_whole BEFORE TRUNCATE ON operations
FOR EACH STATEMENT EXECUTE FUNCTION never();
CREATE TRIGGER postings_stay BEFORE UPDATE OR DELETE ON postings
FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER postings_whole BEFORE TRUNCATE ON postings
FOR EACH STATEMENT EXECUTE FUNCTION never();
CREATE TRIGGER holds_last BEFORE DELETE ON holds FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER holds_whole BEFORE TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION never();
CREATE TRIGGER head_last BEFORE DELETE ON head FOR EACH ROW EXECUTE FUNCTION never();
