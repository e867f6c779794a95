"""What the controller decides: image and request in, records and answers out. Pure; nothing here does I/O."""
