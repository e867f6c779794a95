"""One module per family of APIs, in packages where a family is large. A handler takes only the ports that it uses."""
