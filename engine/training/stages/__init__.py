"""Pipeline stages: forward, backward and held memory of one rank's layers."""
