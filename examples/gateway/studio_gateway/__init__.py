"""A WebSocket relay between game clients and Fangcheng: one stream up, JSON frames down.

``hub`` has the one stream to the tables and knows whose frames are whose; ``session`` is one
client's connection; ``frames`` goes between JSON and the contract; ``players`` checks who connects;
``server`` listens, and ends everything in order.
"""
