"""Where a plan is carried out: described devices, real ranks, or one above the other."""
