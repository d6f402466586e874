-- Operators collect what players owe, or write it off: one verb more. SQLite has no ALTER for a
-- constraint; this is the way that its documentation gives where no row has to change
-- (lang_altertable, "making other kinds of table schema changes").
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''reverse'', ''freeze''', '''reverse'', ''freeze'', ''collect''')
WHERE type = 'table' AND name = 'operations';
PRAGMA writable_schema = RESET;
