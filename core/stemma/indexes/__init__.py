"""Indexes: which stored entries are near a vector. Derived from the store, rebuilt from it."""
