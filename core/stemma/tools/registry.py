"""Which declaration holds for a tool: the registry's, for tools one cannot edit, else its own."""

from __future__ import annotations

import warnings
from typing import Literal, get_args

from stemma.errors import UsageError
from stemma.tools.marks import contradicted, policy_of, unfit
from stemma.tools.policy import ToolPolicy

__all__ = ["ToolRegistry", "Unknown"]

Unknown = Literal["pass", "clear"]


class ToolRegistry:
    """Declarations by the names of tools.

    Args:
        unknown: What a call of an undeclared tool means for what was read before: `"pass"`,
            nothing; `"clear"`, that it may have changed any resource of the tenant.

    Raises:
        UsageError: `unknown` is something else.
    """

    def __init__(self, *, unknown: Unknown = "pass") -> None:
        if unknown not in get_args(Unknown):
            raise UsageError(f'unknown must be "pass" or "clear", not {unknown!r}')
        self.unknown: Unknown = unknown
        self._declared: dict[str, ToolPolicy] = {}

    def declare(
        self,
        name: str,
        policy: ToolPolicy,
        *,
        tool: object | None = None,
        replace: bool = False,
    ) -> None:
        """Declare a tool by its name. This counts before what the tool says itself.

        Args:
            name: The name by which it is called.
            policy: The declaration. `ToolPolicy(ttl=0)` takes a tool's own declaration away.
            tool: The tool, if it is there: the declaration is then checked against it.
            replace: Whether another declaration of the same name may be there already.

        Raises:
            UsageError: The name is declared otherwise, or the declaration is not of this tool.
        """
        if not isinstance(name, str) or name == "":
            raise UsageError(f"a tool's name must be a text that is not empty, not {name!r}")
        if not isinstance(policy, ToolPolicy):
            raise UsageError(f"a declaration must be a ToolPolicy, not {type(policy).__name__}")
        if not replace and self._declared.get(name, policy) != policy:
            raise UsageError(f"tool {name!r} is declared otherwise already; replace=True replaces")
        if tool is not None:
            _check(name, policy, tool)
        self._declared[name] = policy

    def policy(self, name: str, tool: object | None = None) -> ToolPolicy | None:
        """The declaration that holds for a tool; `None` if there is none."""
        declared = self._declared.get(name)
        return declared if declared is not None or tool is None else policy_of(tool)

    @property
    def owners(self) -> frozenset[str]:
        """The owners that are declared here, save tenants themselves."""
        return frozenset(one.owner for one in self._declared.values() if one.owner)

    def check(self, name: str, tool: object) -> None:
        """See at the start whether a tool is what its declaration says.

        Warns where annotations of MCP (`readOnlyHint`, `destructiveHint`) say otherwise.

        Raises:
            UsageError: The declaration speaks of arguments that the tool does not have, or the tool
                is a generator.
        """
        policy = self.policy(name, tool)
        if policy is not None:
            _check(name, policy, tool)


def _check(name: str, policy: ToolPolicy, tool: object) -> None:
    if wrong := unfit(policy, tool):
        raise UsageError(f"tool {name!r}: {wrong}")
    if told := contradicted(policy, tool):
        warnings.warn(f"tool {name!r}: {told}", RuntimeWarning, stacklevel=3)
