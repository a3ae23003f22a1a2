"""Pure decisions: guards, thresholds, lives and admission. Nothing here does any I/O."""
