"""What the controller decides: image and request in, records and answers out.

Plans are pure functions of their arguments, with two exceptions. `diskless_switch.check_contents` asks logs and stores
through a port, before the controller's turn. `switch_requests` gives functions that read and change rows of the control
plane, in the transaction that writes the records of the plan.
"""
