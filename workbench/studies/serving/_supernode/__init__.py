"""CloudMatrix-Infer's checks: ranks that dispatch, rates of its phases, a pooled cache."""
