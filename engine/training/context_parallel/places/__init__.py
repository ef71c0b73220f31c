"""Where the ranks are: processes of this machine, or described devices."""
