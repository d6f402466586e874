-- What a player has lost on a day, in the currencies that the pools of his tables cap; `day` counts
-- from 1970-01-01 by the studio's calendar. Below 0: he has won.
CREATE TABLE losses (
    player_id TEXT NOT NULL,
    day BIGINT NOT NULL,
    currency TEXT NOT NULL,
    book TEXT NOT NULL,
    lost BIGINT NOT NULL,
    PRIMARY KEY (player_id, day, currency, book)
);
