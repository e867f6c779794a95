"""How costs grow with the number of partitions, connections, group members, batch rows and remote segments.

`python -m bench.growth` runs them; each module measures one of these dimensions at one size.
"""
