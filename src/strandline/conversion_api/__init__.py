"""What the tiering pipeline and the brokers tell each other: requests and answers as values, and their JSON.

Here: values and their codec, for brokers and for the pipeline alike. Not here: who answers (`hybrid.conversion`), who
asks (`pipeline`), and how it gets there (`admin.http`). docs/tiering-api.md describes every request.
"""
