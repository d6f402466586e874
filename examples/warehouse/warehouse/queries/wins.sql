-- How often each seat wins, by rule set and whether it deals; deal-ins beside.
SELECT rule_set,
       is_dealer,
       count(*)                                              AS hands_of_seats,
       round(100.0 * count(*) FILTER (WHERE won) / count(*), 1)      AS won_percent,
       round(100.0 * count(*) FILTER (WHERE dealt_in) / count(*), 1) AS dealt_in_percent,
       round(avg(units), 2)                                  AS units_a_hand,
       round(avg(fan) FILTER (WHERE won), 2)                 AS fan_of_wins
FROM seats
GROUP BY ALL
ORDER BY ALL
