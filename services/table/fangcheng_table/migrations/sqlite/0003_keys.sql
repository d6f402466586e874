-- The keys that events were sealed with; a proof tells whether a key is the same, and no more.
CREATE TABLE journal_keys (key_id TEXT PRIMARY KEY, proof BLOB NOT NULL) STRICT, WITHOUT ROWID;
