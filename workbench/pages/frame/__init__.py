"""The frame of pages: places to go, theme, addresses, files, visitors and what they may do."""
