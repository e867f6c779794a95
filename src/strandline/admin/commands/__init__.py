"""The `strandline` command: one module per group of commands, and what they share (`client`, `output`, `data`).

`main` puts them together and needs typer and rich. `start`, which runs a broker, imports neither: clients wait while a
broker starts.
"""
