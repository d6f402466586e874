"""Which pairs of players have more to do with each other than chance explains.

Pure: hands go in as facts, findings come out; no wire, no database. `facts` says what is looked
at, `chance` what chance would bring, `significance` how far from it something is, `findings` puts
them together, and `rehearsal` plants collusion to see whether it is found. docs/integrity.md
explains the method and its limits. A finding is a reason to look at hands, never a proof.
"""
