"""Where entries come from: frames collect what is read, validity walks what was built on it."""
