-- Players whose personal data was erased, by the request: a repeat finds that it was done. `labels` is a
-- digest; what was erased is not kept here.
CREATE TABLE erasures (
    request_id TEXT PRIMARY KEY,
    player_id TEXT NOT NULL,
    labels TEXT NOT NULL,
    keep_texts BIGINT NOT NULL,
    reason TEXT NOT NULL,
    time_ms BIGINT NOT NULL
);
CREATE INDEX erasures_of_player ON erasures (player_id);
