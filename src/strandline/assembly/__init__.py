"""Builds the components of a broker and connects them, a module for each layer, in the order of the layers.

- `base`, `metadata`: the database, the metadata and its controller; `replicas`: the logs on this broker's disks;
- `hybrid`: partitions, and the topics of each tier; `switching`, `conversion`: what leads from one tier to the other;
  `tiers`: what serves all of that; `partitions`: these layers together;
- `loading`: the code that is loaded when a broker needs it; `diskless_tier`, `remote_storage`: that code, the two tiers
  as they are opened;
- `coordinators`: groups, share groups, transactions; `handlers`, `server`: requests of clients.

A function here takes the values of lower layers and gives the value of its own. It constructs and connects: nothing
here runs, waits or decides, but for the two tiers, which are opened. Functions fit a screen; `tests/test_house.py`
checks that. Two components that need each other are joined by a function that looks the second one up when it is
called, and a comment says why neither can come first. Layers are named tuples: clients wait while a broker loads its
code, and frozen dataclasses take ten times as long to define.

Not here: in which order components are started and stopped (`strandline.broker`), and what they do.
"""
