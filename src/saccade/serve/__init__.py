"""The HTTP service and its page: an event loop that never touches torch, and one process for each model."""
