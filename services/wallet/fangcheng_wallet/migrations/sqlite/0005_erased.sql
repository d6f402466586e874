-- Personal data can be erased: texts and labels go, and nothing else. The operations from which they
-- went, with what the chain has of each as it was written. An operation with the verb `mask`, in the
-- chain itself, says what is left of them. See `chain`.
CREATE TABLE erased (
    operation INTEGER PRIMARY KEY,
    own BLOB NOT NULL CHECK (length(own) = 32)
) STRICT;

CREATE TRIGGER erased_follow BEFORE INSERT ON erased BEGIN
    SELECT RAISE(ABORT, 'only what is in the chain is erased')
    WHERE NEW.operation NOT IN (SELECT operation FROM links);
END;
CREATE TRIGGER erased_stay BEFORE UPDATE ON erased
BEGIN SELECT RAISE(ABORT, 'what was erased stays noted'); END;
CREATE TRIGGER erased_last BEFORE DELETE ON erased
BEGIN SELECT RAISE(ABORT, 'what was erased stays noted'); END;

DROP TRIGGER operations_stay;
CREATE TRIGGER operations_stay BEFORE UPDATE ON operations
WHEN NEW.id <> OLD.id OR NEW.verb <> OLD.verb OR NEW.key IS NOT OLD.key
    OR NEW.time_us <> OLD.time_us OR NEW.first_posting <> OLD.first_posting
    OR NEW.last_posting <> OLD.last_posting
    OR NOT EXISTS (SELECT 1 FROM erased WHERE operation = OLD.id)
BEGIN SELECT RAISE(ABORT, 'operations are never changed'); END;

DROP TRIGGER postings_stay;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
WHEN NEW.id <> OLD.id OR NEW.account <> OLD.account OR NEW.version <> OLD.version
    OR NEW.operation <> OLD.operation OR NEW.amount <> OLD.amount
    OR NEW.balance_after <> OLD.balance_after OR NEW.reason <> OLD.reason
    OR NEW.reference <> OLD.reference OR NEW.time_us <> OLD.time_us OR NEW.memo <> ''
    OR NOT EXISTS (SELECT 1 FROM erased WHERE operation = OLD.operation)
BEGIN SELECT RAISE(ABORT, 'postings are never changed'); END;

-- Two verbs more; see 0003 for the way.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(
    replace(sql, '''freeze'', ''collect''', '''freeze'', ''collect'', ''mask'', ''erase'''),
    '''release_holds'', ''expire_hold''))', '''release_holds'', ''expire_hold'', ''mask''))'
)
WHERE type = 'table' AND name = 'operations';
PRAGMA writable_schema = RESET;
