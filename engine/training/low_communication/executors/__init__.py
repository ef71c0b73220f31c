"""Where replicas run: in one process, on a described network, or as real ranks."""
