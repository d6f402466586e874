-- The ledger in SQLite. What must never happen is refused here, whatever the program above does:
-- postings and operations are only ever added; a posting continues its account without a gap and with
-- the right balance; no balance leaves its bounds; the postings of an operation add up to zero; time
-- does not go back. Every committed operation holds to all of it.

CREATE TABLE players (
    player_id TEXT NOT NULL PRIMARY KEY CHECK (player_id <> ''),
    opened_us INTEGER NOT NULL,
    frozen INTEGER NOT NULL DEFAULT 0 CHECK (frozen IN (0, 1)),
    reason TEXT NOT NULL DEFAULT '',
    case_id TEXT NOT NULL DEFAULT '',
    changed_us INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('player', 'hold', 'house', 'external', 'receivable')),
    owner TEXT NOT NULL CHECK ((owner = '') = (kind IN ('house', 'external'))),
    -- Whose money it is: the owner, or the player of a hold.
    player_id TEXT NOT NULL CHECK (kind = 'hold' OR player_id = owner),
    currency TEXT NOT NULL CHECK (currency <> ''),
    book TEXT NOT NULL,
    floor INTEGER NOT NULL CHECK (floor BETWEEN -9007199254740992 AND 0),
    balance INTEGER NOT NULL DEFAULT 0 CHECK (
        balance BETWEEN floor AND CASE kind WHEN 'receivable' THEN 0 ELSE 9007199254740992 END
    ),
    version INTEGER NOT NULL DEFAULT 0 CHECK (version >= 0),
    UNIQUE (owner, kind, currency, book)
) STRICT;

CREATE INDEX accounts_of_player ON accounts (player_id);

-- What happened, in order. `body` is what the caller sent, `answer` what it was answered, both as
-- canonical JSON. The postings first_posting..last_posting are this operation's, and only they are.
CREATE TABLE operations (
    id INTEGER PRIMARY KEY,
    verb TEXT NOT NULL CHECK (
        verb IN (
            'deposit', 'withdraw', 'place_holds', 'top_up_hold', 'hand_over', 'extend_holds',
            'release_holds', 'expire_hold', 'settle', 'reverse', 'freeze'
        )
    ),
    key TEXT CHECK (
        (key IS NULL)
        = (verb IN ('hand_over', 'extend_holds', 'release_holds', 'expire_hold'))
    ),
    time_us INTEGER NOT NULL,
    body TEXT NOT NULL,
    answer TEXT NOT NULL,
    first_posting INTEGER NOT NULL,
    last_posting INTEGER NOT NULL CHECK (last_posting >= first_posting - 1),
    -- Of the settlement that this is, or reverses; NULL: none.
    labels TEXT,
    UNIQUE (key, verb)
) STRICT;

CREATE INDEX operations_at ON operations (time_us);

-- An operation is written after its postings, and seals them: the foreign key waits for the commit.
CREATE TABLE postings (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL REFERENCES accounts (id),
    version INTEGER NOT NULL,
    operation INTEGER NOT NULL REFERENCES operations (id) DEFERRABLE INITIALLY DEFERRED,
    amount INTEGER NOT NULL
        CHECK (amount <> 0 AND amount BETWEEN -9007199254740992 AND 9007199254740992),
    balance_after INTEGER NOT NULL,
    reason TEXT NOT NULL,
    reference TEXT NOT NULL,
    memo TEXT NOT NULL,
    time_us INTEGER NOT NULL
) STRICT;

-- The rowid at the end of an index makes this one serve statements, newest first.
CREATE INDEX postings_of_account ON postings (account);
-- Without it the foreign key would read all postings at each new operation.
CREATE INDEX postings_of_operation ON postings (operation);

CREATE TABLE holds (
    hold_id TEXT NOT NULL PRIMARY KEY,
    account INTEGER NOT NULL UNIQUE REFERENCES accounts (id),
    player_id TEXT NOT NULL REFERENCES players (player_id),
    amount INTEGER NOT NULL CHECK (amount BETWEEN 1 AND 9007199254740992),
    state TEXT NOT NULL CHECK (state IN ('open', 'released', 'expired')),
    table_id TEXT NOT NULL,
    expires_at_us INTEGER,
    given_back INTEGER NOT NULL CHECK (given_back BETWEEN 0 AND amount),
    placed_by INTEGER NOT NULL,
    -- The operation that changed the row last; what remains of a hold is in its account.
    changed_by INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX open_holds ON holds (player_id) WHERE state = 'open';
CREATE INDEX holds_expiring ON holds (expires_at_us) WHERE state = 'open';

CREATE TRIGGER postings_continue BEFORE INSERT ON postings BEGIN
    SELECT RAISE(ABORT, 'a posting must continue its account')
    WHERE NOT EXISTS (
        SELECT 1 FROM accounts
        WHERE id = NEW.account
            AND version + 1 = NEW.version AND balance + NEW.amount = NEW.balance_after
    );
    SELECT RAISE(ABORT, 'the operation of a posting must be the next one')
    WHERE NEW.operation <> 1 + COALESCE((SELECT MAX(id) FROM operations), 0);
END;

CREATE TRIGGER postings_carry AFTER INSERT ON postings BEGIN
    UPDATE accounts SET balance = NEW.balance_after, version = NEW.version WHERE id = NEW.account;
END;

CREATE TRIGGER accounts_begin BEFORE INSERT ON accounts BEGIN
    SELECT RAISE(ABORT, 'an account begins at nothing') WHERE NEW.balance <> 0 OR NEW.version <> 0;
END;

CREATE TRIGGER accounts_follow BEFORE UPDATE OF balance, version ON accounts BEGIN
    SELECT RAISE(ABORT, 'an account must follow its postings')
    WHERE NEW.version <> OLD.version + 1 OR NOT EXISTS (
        SELECT 1 FROM postings
        WHERE id = (SELECT MAX(id) FROM postings)
            AND account = NEW.id AND version = NEW.version AND balance_after = NEW.balance
    );
END;

CREATE TRIGGER operations_follow BEFORE INSERT ON operations BEGIN
    SELECT RAISE(ABORT, 'an operation must follow the one before')
    WHERE NEW.id <> 1 + COALESCE((SELECT MAX(id) FROM operations), 0)
        OR NEW.last_posting <> COALESCE((SELECT MAX(id) FROM postings), 0)
        OR NEW.first_posting
            <> 1 + COALESCE((SELECT last_posting FROM operations ORDER BY id DESC LIMIT 1), 0);
    SELECT RAISE(ABORT, 'time must not go back')
    WHERE NEW.time_us < (SELECT time_us FROM operations ORDER BY id DESC LIMIT 1);
    SELECT RAISE(ABORT, 'a posting has the time of its operation')
    WHERE EXISTS (
        SELECT 1 FROM postings
        WHERE id BETWEEN NEW.first_posting AND NEW.last_posting AND time_us <> NEW.time_us
    );
    -- At most some hundred postings of at most 2^53 each: the sum fits into 64 bits.
    SELECT RAISE(ABORT, 'an operation must add up to zero')
    WHERE EXISTS (
        SELECT 1 FROM postings JOIN accounts ON accounts.id = postings.account
        WHERE postings.id BETWEEN NEW.first_posting AND NEW.last_posting
        GROUP BY currency, book HAVING SUM(amount) <> 0
    );
END;

CREATE TRIGGER holds_place BEFORE INSERT ON holds BEGIN
    SELECT RAISE(ABORT, 'a hold is placed by the last operation, full')
    WHERE NEW.state <> 'open'
        OR NEW.placed_by IS NOT (SELECT MAX(id) FROM operations)
        OR NEW.changed_by <> NEW.placed_by
        OR NEW.amount IS NOT (SELECT balance FROM accounts WHERE id = NEW.account);
END;

CREATE TRIGGER holds_change BEFORE UPDATE ON holds BEGIN
    SELECT RAISE(ABORT, 'of a hold that is over, only what it gave back is used up')
    WHERE OLD.state <> 'open' AND (
        NEW.state <> OLD.state OR NEW.amount <> OLD.amount OR NEW.table_id <> OLD.table_id
        OR NEW.expires_at_us IS NOT OLD.expires_at_us OR NEW.given_back > OLD.given_back
    );
    SELECT RAISE(ABORT, 'a hold keeps its owner and its table, and is changed by the last operation')
    WHERE NEW.changed_by IS NOT (SELECT MAX(id) FROM operations)
        OR NEW.hold_id <> OLD.hold_id OR NEW.account <> OLD.account
        OR NEW.player_id <> OLD.player_id OR NEW.placed_by <> OLD.placed_by
        OR NEW.amount < OLD.amount OR OLD.table_id NOT IN ('', NEW.table_id);
    SELECT RAISE(ABORT, 'a hold that is over is empty')
    WHERE NEW.state <> 'open'
        AND (SELECT balance FROM accounts WHERE id = OLD.account) <> 0;
END;

CREATE TRIGGER accounts_stay BEFORE UPDATE OF id, kind, owner, player_id, currency, book ON accounts
BEGIN SELECT RAISE(ABORT, 'an account keeps its owner and currency'); END;
CREATE TRIGGER accounts_last BEFORE DELETE ON accounts
BEGIN SELECT RAISE(ABORT, 'accounts are never deleted'); END;
CREATE TRIGGER players_stay BEFORE UPDATE OF player_id, opened_us ON players
BEGIN SELECT RAISE(ABORT, 'a wallet keeps its player'); END;
CREATE TRIGGER players_last BEFORE DELETE ON players
BEGIN SELECT RAISE(ABORT, 'wallets are never deleted'); END;
CREATE TRIGGER operations_stay BEFORE UPDATE ON operations
BEGIN SELECT RAISE(ABORT, 'operations are never changed'); END;
CREATE TRIGGER operations_last BEFORE DELETE ON operations
BEGIN SELECT RAISE(ABORT, 'operations are never deleted'); END;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;
CREATE TRIGGER postings_last BEFORE DELETE ON postings
BEGIN SELECT RAISE(ABORT, 'postings are never deleted'); END;
CREATE TRIGGER holds_last BEFORE DELETE ON holds
BEGIN SELECT RAISE(ABORT, 'holds are never deleted'); END;
