"""`strandline cluster`: several broker processes on this machine, for trying things out.

`command` has the options, `plan` what they mean: ports, racks, files, settings. `running` runs it: `database` and
`processes` start and stop processes, `log_lines` finds the warnings in their logs, `looking` asks the brokers how they
are, `view` makes one value of the answers, and `screens` show it. `postgres_keeper` is a program of its own: it runs
PostgreSQL and stops it when the command has ended, however it ended. Not here: what a broker does (`start`).
"""
