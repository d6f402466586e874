-- What was moved by hands, day by day and currency by currency, and what the house kept (rake, fees).
SELECT day,
       currency,
       book,
       count(DISTINCT reference)                                       AS settlements,
       sum(amount) FILTER (WHERE account IN ('player', 'hold') AND amount > 0) AS won,
       sum(amount) FILTER (WHERE account = 'house')                    AS house
FROM entries
WHERE verb = 'settle'
GROUP BY ALL
ORDER BY ALL
