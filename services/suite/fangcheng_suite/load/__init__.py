"""`fangcheng load`: tables of bots at the public API, and what they waited for.

`playing` starts a suite (`suites`), unless there is one, and `running` client processes (`client`).
They queue players, seat them on streams of a gateway, act for them (`seats`), and tell what they
have measured (`measured`). `report` tells people of it, as lines, a page or JSON.
"""
