"""Tools of agents: what may be kept of them, what they read and what they write.

```python
from stemma.tools import ToolCaching, cacheable


@cacheable(ttl=300, reads=["booking:{id}"])
def get_booking(id: str) -> dict: ...


@cacheable(writes=["booking:{id}"])
def cancel_booking(id: str) -> str: ...


tools = ToolCaching(cache)
get_booking, cancel_booking = tools.wrap(get_booking), tools.wrap(cancel_booking)
```

Nothing of a tool that declares nothing is ever kept. Importing this loads no framework.
"""

from stemma.tools.caching import ToolCaching
from stemma.tools.marks import cacheable, policy_of
from stemma.tools.policy import ToolPolicy
from stemma.tools.registry import ToolRegistry

__all__ = ["ToolCaching", "ToolPolicy", "ToolRegistry", "cacheable", "policy_of"]
