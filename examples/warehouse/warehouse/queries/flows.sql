-- Who has paid whom the most units, over all hands: where to look first.
SELECT rule_set,
       from_player,
       to_player,
       sum(units)               AS units,
       count(DISTINCT (table_id, hand_number)) AS hands
FROM transfers
WHERE from_player IS NOT NULL AND to_player IS NOT NULL
GROUP BY ALL
ORDER BY units DESC
LIMIT 20
