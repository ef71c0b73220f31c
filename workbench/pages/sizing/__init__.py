"""Sizing pages: splits of training over a cluster, what a described run will take."""
