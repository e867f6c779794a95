"""Objects in S3, GCS or Azure. Loaded only by brokers that use a bucket: importing obstore makes a start slower."""
