-- The chain of hashes, which a background task writes a moment after the operations. See `chain`.
CREATE TABLE links (
    operation bigint PRIMARY KEY,
    digests bytea NOT NULL,
    head bytea NOT NULL CHECK (octet_length(head) = 32)
);

CREATE TRIGGER links_stay BEFORE UPDATE OR DELETE ON links FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER links_whole BEFORE TRUNCATE ON links FOR EACH STATEMENT EXECUTE FUNCTION never();

CREATE FUNCTION links_follow() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    before bigint;
BEGIN
    SELECT coalesce(max(operation), 0) INTO before FROM links
    WHERE operation < (SELECT min(operation) FROM fresh);
    IF EXISTS (
        SELECT FROM (
            SELECT operation - lag(operation, 1, before) OVER (ORDER BY operation) AS step FROM fresh
        ) AS one
        WHERE step <> 1
    ) OR (SELECT max(operation) FROM fresh) > (SELECT operation FROM head) THEN
        RAISE EXCEPTION 'a link must follow the one before, and an operation'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER links_follow AFTER INSERT ON links
REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION links_follow();

-- Months whose postings were archived and dropped. `closing` is how every account stood after them:
-- id, version, balance, one JSON array of arrays.
CREATE TABLE archives (
    month text PRIMARY KEY,
    until_us bigint NOT NULL UNIQUE,
    last_operation bigint NOT NULL,
    last_posting bigint NOT NULL,
    head bytea NOT NULL CHECK (octet_length(head) = 32),
    closing jsonb NOT NULL
);

CREATE TRIGGER archives_stay BEFORE UPDATE OR DELETE ON archives
FOR EACH ROW EXECUTE FUNCTION never();
