"""Which cached page to give up first."""
