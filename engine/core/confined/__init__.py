"""Strangers' programs in processes of their own: warm children with limits, and no way out."""
