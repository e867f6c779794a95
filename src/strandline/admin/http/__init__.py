"""HTTP beside the Kafka listener: `/healthz`, `/readyz`, `/metrics`, the status as JSON, and a page for people at `/`.

Everything is made of `admin.status` values. `server` loads starlette and uvicorn, which takes longer than loading the
rest of the broker: a broker imports it once it serves clients.
"""
