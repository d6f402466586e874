"""What an integrator needs beside the stubs: connections, streams that resume, readable errors.

    channel = connect("127.0.0.1:7103", token=token, act_as="ming")
    async for event in attend(channel, table_id):
        ...

``connect`` sets up what every client of the suite should have (spreading calls over replicas,
health checks, retries, keepalive, a deadline, the token). ``attend`` and ``watch`` survive broken
connections; ``TableView`` is what their events add up to. ``follow_tables``, ``follow_ticket`` and
``follow_room`` survive them too, for lobbies and whoever waits for a table, and ``ManySeats`` for
gateways that attend for their players. ``explain`` reads the reason out of a refused call, and
``reasons`` has what there is to know of each. ``notation`` turns tile numbers into text and back.
``hands`` evaluates hands by the thousand; it needs NumPy (the extra ``hands``).
``service_config.json`` beside this file is the set-up for other languages.
"""

from fangcheng_client.channel import SERVICE_CONFIG, connect
from fangcheng_client.following import TablesNews, follow_room, follow_tables, follow_ticket
from fangcheng_client.many import ManySeats
from fangcheng_client.problems import Problem, explain
from fangcheng_client.streams import attend, resumed, watch
from fangcheng_client.view import TableView

__all__ = [
    "SERVICE_CONFIG",
    "ManySeats",
    "Problem",
    "TableView",
    "TablesNews",
    "attend",
    "connect",
    "explain",
    "follow_room",
    "follow_tables",
    "follow_ticket",
    "resumed",
    "watch",
]
