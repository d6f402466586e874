-- A wallet is a bot's or a person's from when it was opened, for ever: the house funds bots.
ALTER TABLE players ADD COLUMN is_bot INTEGER NOT NULL DEFAULT 0 CHECK (is_bot IN (0, 1));
DROP TRIGGER players_stay;
CREATE TRIGGER players_stay BEFORE UPDATE OF player_id, opened_us, is_bot ON players
BEGIN SELECT RAISE(ABORT, 'a wallet keeps its player'); END;
