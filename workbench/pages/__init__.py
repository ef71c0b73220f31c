"""Pages of the web app."""
