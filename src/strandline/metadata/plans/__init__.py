"""What the controller decides: image and request in, records, effects and answers out.

Plans are pure functions of their arguments; ids and chance are among these. Nothing here waits, reads a file or knows
the database. What a decision does in the control plane is an effect (`metadata.effects`): a value that the controller
carries out in the transaction that writes the records. What has to be asked first is asked by the controller, too.
"""
