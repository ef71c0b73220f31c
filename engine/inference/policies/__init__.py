"""Ideas of who is served when: ordering, admission, batching and preemption."""
