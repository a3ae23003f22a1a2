"""What `stemma demo` shows: a RAG chain over real text and a real model, cold and warm."""

__all__: list[str] = []
