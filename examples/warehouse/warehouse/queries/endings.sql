-- How hands end, by rule set, and how long they are.
WITH ends AS (
    SELECT rule_set, ending, won_by, count(*) AS hands, round(avg(discards), 1) AS discards
    FROM hands
    GROUP BY ALL
)
SELECT rule_set, ending, won_by, hands,
       round(100.0 * hands / sum(hands) OVER (PARTITION BY rule_set), 1) AS percent,
       discards
FROM ends
ORDER BY rule_set, hands DESC
