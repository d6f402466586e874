-- Personal data can be erased: texts and labels go, and nothing else. The operations from which they
-- went, with what the chain has of each as it was written. An operation with the verb `mask`, in the
-- chain itself, says what is left of them. See `chain`.
CREATE TABLE erased (
    operation bigint PRIMARY KEY REFERENCES links (operation),
    own bytea NOT NULL CHECK (octet_length(own) = 32)
);
CREATE TRIGGER erased_stay BEFORE UPDATE OR DELETE ON erased
FOR EACH ROW EXECUTE FUNCTION never();
CREATE TRIGGER erased_whole BEFORE TRUNCATE ON erased
FOR EACH STATEMENT EXECUTE FUNCTION never();

CREATE FUNCTION operations_masked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF ROW(NEW.id, NEW.verb, NEW.key, NEW.time_us, NEW.first_posting, NEW.last_posting)
        IS DISTINCT FROM
        ROW(OLD.id, OLD.verb, OLD.key, OLD.time_us, OLD.first_posting, OLD.last_posting)
        OR NOT EXISTS (SELECT FROM erased WHERE operation = OLD.id) THEN
        RAISE EXCEPTION 'operations are never changed' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER operations_stay ON operations;
CREATE TRIGGER operations_stay BEFORE UPDATE ON operations
FOR EACH ROW EXECUTE FUNCTION operations_masked();
CREATE TRIGGER operations_last BEFORE DELETE ON operations
FOR EACH ROW EXECUTE FUNCTION never();

CREATE FUNCTION postings_masked() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    OLD.memo := '';
    IF NEW IS DISTINCT FROM OLD
        OR NOT EXISTS (SELECT FROM erased WHERE operation = OLD.operation) THEN
        RAISE EXCEPTION 'postings are never changed' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
DROP TRIGGER postings_stay ON postings;
CREATE TRIGGER postings_stay BEFORE UPDATE ON postings
FOR EACH ROW EXECUTE FUNCTION postings_masked();
CREATE TRIGGER postings_last BEFORE DELETE ON postings FOR EACH ROW EXECUTE FUNCTION never();

ALTER TABLE operations
    DROP CONSTRAINT operations_verb_check,
    ADD CONSTRAINT operations_verb_check CHECK (
        verb IN (
            'deposit', 'withdraw', 'place_holds', 'top_up_hold', 'hand_over', 'extend_holds',
            'release_holds', 'expire_hold', 'settle', 'reverse', 'freeze', 'collect', 'mask', 'erase'
        )
    ),
    DROP CONSTRAINT operations_check,
    ADD CONSTRAINT operations_key_check CHECK (
        (key IS NULL)
        = (verb IN ('hand_over', 'extend_holds', 'release_holds', 'expire_hold', 'mask'))
    );
