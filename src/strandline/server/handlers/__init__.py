"""One module per family of APIs. A handler asks only for the ports it uses."""
