"""What administrators ask of the whole cluster: quotas, credentials, features, access rules, controller and members."""
