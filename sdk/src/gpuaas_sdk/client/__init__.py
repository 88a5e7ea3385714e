"""The typed client: every call of the API with its models, errors and events. The rest of the SDK builds on it."""
