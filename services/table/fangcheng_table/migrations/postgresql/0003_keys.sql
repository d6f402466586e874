-- The keys that events were sealed with; a proof tells whether a key is the same, and no more.
CREATE TABLE journal_keys (key_id text COLLATE "C" PRIMARY KEY, proof bytea NOT NULL);
