-- A wallet is a bot's or a person's from when it was opened, for ever: the house funds bots.
ALTER TABLE players ADD COLUMN is_bot boolean NOT NULL DEFAULT false;
DROP TRIGGER players_stay ON players;
CREATE TRIGGER players_stay BEFORE UPDATE OF player_id, opened_us, is_bot ON players
FOR EACH ROW EXECUTE FUNCTION never();
