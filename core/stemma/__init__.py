"""Semantic caches for RAG and agents that know where every answer came from."""
