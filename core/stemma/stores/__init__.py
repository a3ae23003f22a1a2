"""Stores: where entries, vectors, edges and the journal are kept."""
