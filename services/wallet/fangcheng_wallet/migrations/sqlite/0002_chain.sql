-- The chain of hashes, which a background task writes a moment after the operations. See `chain`.
CREATE TABLE links (
    operation INTEGER PRIMARY KEY,
    digests BLOB NOT NULL,
    head BLOB NOT NULL CHECK (length(head) = 32)
) STRICT;

CREATE TRIGGER links_follow BEFORE INSERT ON links BEGIN
    SELECT RAISE(ABORT, 'a link must follow the one before, and an operation')
    WHERE NEW.operation <> 1 + COALESCE((SELECT MAX(operation) FROM links), 0)
        OR NEW.operation > (SELECT MAX(id) FROM operations);
END;

CREATE TRIGGER links_stay BEFORE UPDATE ON links
BEGIN SELECT RAISE(ABORT, 'links are never changed'); END;
CREATE TRIGGER links_last BEFORE DELETE ON links
BEGIN SELECT RAISE(ABORT, 'links are never deleted'); END;
