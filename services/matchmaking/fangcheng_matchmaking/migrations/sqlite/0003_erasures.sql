-- Players whose personal data was erased, by the request: a repeat finds that it was done. `labels` is a
-- digest; what was erased is not kept here.
CREATE TABLE erasures (
    request_id TEXT PRIMARY KEY,
    player_id TEXT NOT NULL,
    labels TEXT NOT NULL,
    keep_texts INTEGER NOT NULL,
    reason TEXT NOT NULL,
    time_ms INTEGER NOT NULL
) STRICT;
CREATE INDEX erasures_of_player ON erasures (player_id);
