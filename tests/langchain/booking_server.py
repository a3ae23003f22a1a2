"""An MCP server over stdio: bookings, in a file that also notes each call."""

import json
import sys
from pathlib import Path

from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

FILE = Path(sys.argv[1])
server = FastMCP("bookings", log_level="ERROR")


def noted(call: str) -> dict:
    state = json.loads(FILE.read_text())
    state["calls"].append(call)
    FILE.write_text(json.dumps(state))
    return state


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, idempotentHint=True))
def get_booking(number: str) -> dict:
    """Get a booking."""
    return {"number": number, "seat": noted(f"get {number}")["seats"][number]}


@server.tool(annotations=ToolAnnotations(readOnlyHint=False))
def move(number: str, seat: str) -> str:
    """Move somebody to another seat."""
    state = noted(f"move {number}")
    state["seats"][number] = seat
    FILE.write_text(json.dumps(state))
    return f"moved to {seat}"


server.run()
