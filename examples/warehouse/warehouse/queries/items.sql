-- Which fan items wins have, by rule set.
WITH wins AS (SELECT rule_set, count(*) AS wins FROM seats WHERE won GROUP BY ALL)
SELECT items.rule_set,
       item,
       any_value(name_zh)                      AS name_zh,
       count(*)                                AS in_wins,
       round(100.0 * count(*) / any_value(wins), 1) AS percent_of_wins,
       round(avg(fan), 2)                      AS fan
FROM items JOIN wins USING (rule_set)
GROUP BY ALL
ORDER BY items.rule_set, in_wins DESC
