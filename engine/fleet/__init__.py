"""Fleet: many serving engines under one virtual clock, with routers, pools, links and faults."""
