"""How sure a model was of a reply, by the log-probabilities that its provider gives on request."""

from __future__ import annotations

from stemma.policies.confidence import likelihood
from stemma_llamaindex.usage import Reply

__all__ = ["sure_of"]


def sure_of(reply: Reply, text: str) -> float | None:
    """By `logprobs` of a reply; `None` where there are none, or its text cannot be told by them.

    LlamaIndex keeps for each token the likeliest ones, and not which of them was said: that is read
    from the text.

    Args:
        reply: The reply.
        text: Its text.
    """
    said = []
    for alternatives in reply.logprobs if reply.logprobs is not None else ():
        fit = [one for one in alternatives if one.token and text.startswith(one.token)]
        if not fit:
            return None
        longest = max(fit, key=lambda one: len(one.token))
        text = text[len(longest.token) :]
        said.append(longest.logprob)
    return likelihood(said) if not text else None
