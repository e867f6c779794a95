"""Other projects' client test suites and tools against a running broker: `make interop`, or `python -m interop`.

Fetches the suites from package registries into .cache/interop and builds them there; none of their code is kept in
this repository. What is expected to pass is listed in `<suite>.allow`, which only grows; docs/interop.md says why the
rest does not pass. Each suite runs twice: with classic topics, and with a broker whose topics are diskless, for which
there are lists of their own (`<suite>-diskless.allow`).
"""
