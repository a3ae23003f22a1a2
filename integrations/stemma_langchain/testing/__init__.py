"""For tests of what plugs into LangGraph. Needs pytest and LangGraph."""
