-- Whether the books balance: entries of an operation come to nothing in each currency; no gap between.
SELECT (SELECT count(*) FROM entries)                                      AS entries,
       (SELECT count(*) FROM (SELECT 1 FROM entries GROUP BY operation, currency, book
                              HAVING sum(amount) <> 0))                    AS unbalanced,
       (SELECT coalesce(max(sequence) - min(sequence) + 1 - count(*), 0) FROM entries) AS missing
