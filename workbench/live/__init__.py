"""The live engine that server, pages and conversations share."""
