"""Stores around a store: each passes the same suite as the one it holds."""
