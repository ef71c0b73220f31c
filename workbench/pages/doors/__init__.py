"""Pages that people come in by: what they bring leads to what runs."""
