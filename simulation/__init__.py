"""A deterministic simulation of replication: several brokers in one process, and everything that can go wrong.

Leaders, followers, fetchers, sessions of Fetch, logs, recovery, the membership of brokers and the plans of the
controller are the real ones, and requests travel between brokers as the bytes of the real codecs. What is simulated is
what they stand on: time (`loop`), the network (`network`), what a disk keeps when its machine dies (`disks`), and the
database in which the controller's decisions are put in order (`controller`). One seed decides everything.

`world` puts it together and runs it, `faults` are what happens to it, `clients` what it is used for, and `truth` says
what must never be lost. docs/simulation.md tells how to use it.
"""
