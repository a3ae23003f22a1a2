"""A reply is believed as far as its model was sure of it, where the provider tells that."""

import asyncio
import math

import pytest
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata, LogProb
from llama_index.core.llms import CustomLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from pydantic import PrivateAttr

from stemma_llamaindex import CachedLLM

SURE, UNSURE = math.log(0.9), math.log(0.3)


class Speaker(CustomLLM):
    """Says "Rome." with the log-probabilities that it was given, and counts its calls."""

    logprobs: list | None = None
    _calls: int = PrivateAttr(default=0)

    @property
    def metadata(self):
        return LLMMetadata(model_name="speaker")

    @property
    def calls(self):
        return self._calls

    @llm_completion_callback()
    def complete(self, prompt, formatted=False, **kwargs):
        self._calls += 1
        return CompletionResponse(text="Rome.", logprobs=self.logprobs)

    @llm_completion_callback()
    def stream_complete(self, prompt, formatted=False, **kwargs):
        self._calls += 1
        yield CompletionResponse(text="Rome.", delta="Rome.", logprobs=self.logprobs)


def tokens(*said):
    """For each token, what was said, and a likelier one that was not."""
    return [
        [LogProb(token="?", logprob=-0.01), LogProb(token=token, logprob=logprob)]
        for token, logprob in said
    ]


ASK = {
    "complete": lambda m: m.complete("Capital of Italy?"),
    "acomplete": lambda m: asyncio.run(m.acomplete("Capital of Italy?")),
    "stream": lambda m: list(m.stream_complete("Capital of Italy?"))[-1],
}


@pytest.mark.parametrize("style", ASK)
@pytest.mark.parametrize(
    ("logprobs", "confidence", "calls"),
    [
        (tokens(("Rome", SURE), (".", SURE)), 0.9, 1),
        (tokens(("Rome", UNSURE), (".", UNSURE)), 0.3, 3),
        (tokens(("Oslo", UNSURE)), 1.0, 1),
        (tokens(("Rome", UNSURE)), 1.0, 1),
        ([[]], 1.0, 1),
        (None, 1.0, 1),
    ],
)
def test_a_model_that_was_unsure_is_asked_again(cache, style, logprobs, confidence, calls):
    """Until two recomputations have come out the same: then the answer is believed."""
    model = Speaker(logprobs=logprobs)
    cached = CachedLLM(cache, model)
    for _ in range(6):
        assert ASK[style](cached).text == "Rome."
    assert model.calls == calls
    (entry,) = cache.engine.parts.store.find()
    assert entry.confidence == pytest.approx(confidence)
