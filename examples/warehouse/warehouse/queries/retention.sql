-- How many tables get to their next hand, hand by hand, and how long a table has lived by then.
WITH ends AS (
    SELECT rule_set, table_id, hand_number, ended,
           min(ended) OVER (PARTITION BY table_id) AS first
    FROM hands
), counted AS (
    SELECT rule_set, hand_number,
           count(*)                                           AS tables,
           round(median(epoch(ended) - epoch(first)) / 60, 1) AS minutes_since_first
    FROM ends
    GROUP BY ALL
)
SELECT rule_set, hand_number, tables,
       round(100.0 * tables / first_value(tables) OVER (PARTITION BY rule_set ORDER BY hand_number), 1)
                                                              AS percent_of_first,
       minutes_since_first
FROM counted
ORDER BY ALL
