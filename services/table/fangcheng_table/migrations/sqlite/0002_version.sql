-- Such as 0.1.0. Processes of before, which run on while this is added, name none.
ALTER TABLE owners ADD COLUMN version TEXT NOT NULL DEFAULT '';
