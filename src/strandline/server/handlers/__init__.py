"""One module per family of APIs; groups, settings and topics have rooms. A handler asks only for the ports it uses."""
