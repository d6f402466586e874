"""Rule sets studied by many hands between players of ours.

=============  =====================================================================
`plan`         what is to be played: all that the figures follow from
`pools`        the same as a pool of matchmaking states it
`hands`        one session at a table, played; a row for each hand
`stakes`       what its players can pay, by the rules of table and wallet
`workers`      sessions played by several processes, handed back in their order
`estimates`    shares and means with confidence intervals
`figures`      what is told: boards of figures, and spreads
`boards`       what all the rows come to
`told`         the figures for a terminal, and as JSON
`page`         the same as an HTML page
`columns`      the rows as a Parquet file
=============  =====================================================================

The unit is the session: a table's hands from its first to its last. Its chance follows from the
seed and its number alone, so that it does not matter who plays it, and when.
"""
