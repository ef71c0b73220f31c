"""Low-communication training whose peers come and go: who takes part is settled between steps."""
