"""Stemma for LangChain and LangGraph."""
