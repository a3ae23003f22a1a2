"""LangChain's own suites, over a cached chat model that calls tools and streams."""

import itertools
import json
import re
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests
from pydantic import PrivateAttr

import stemma
from stemma_langchain import CachedChatModel

SAMPLES = {"integer": 3, "number": 1.5, "boolean": True, "array": [], "object": {}}


class ChatToy(BaseChatModel):
    """Calls the first of its tools while there is nothing to report, and else talks."""

    model: str = "toy"
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float | None = None
    stop: list[str] | None = None
    max_retries: int = 2
    api_key: str | None = None
    streaming: bool | None = None

    _numbers: Any = PrivateAttr(default_factory=itertools.count)

    @property
    def _llm_type(self):
        return "toy"

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        written = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=written, tool_choice=tool_choice, **kwargs)

    def reply(self, messages, kwargs):
        usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
        said = {
            "usage_metadata": usage,
            "response_metadata": {"model_name": kwargs.get("model", self.model)},
        }
        if not kwargs.get("tools") or isinstance(messages[-1], ToolMessage):
            return AIMessage("It is as you say.", **said)
        function = kwargs["tools"][0]["function"]
        fields = function["parameters"].get("properties", {})
        quoted = re.findall(r"'([^']+)'", messages[-1].text)
        args = {
            name: SAMPLES.get(field.get("type"), quoted[0] if quoted else "something")
            for name, field in fields.items()
        }
        call = {"name": function["name"], "args": args, "id": f"call-{next(self._numbers)}"}
        return AIMessage("", tool_calls=[call], **said)

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return ChatResult(generations=[ChatGeneration(message=self.reply(messages, kwargs))])

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        said = self.reply(messages, kwargs)
        for word in re.findall(r"\S+\s*", said.text):
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        calls = [
            tool_call_chunk(
                name=c["name"], args=json.dumps(c["args"], ensure_ascii=False), id=c["id"], index=0
            )
            for c in said.tool_calls
        ]
        last = AIMessageChunk(
            "",
            tool_call_chunks=calls,
            usage_metadata=said.usage_metadata,
            response_metadata=said.response_metadata,
        )
        yield ChatGenerationChunk(message=last)


class CachedToy(CachedChatModel):
    """The toy behind a cache, made of the toy's parameters."""

    def __init__(self, **params):
        super().__init__(stemma.open(":memory:", embedder=None, tenant="t"), ChatToy(**params))


class WarmToy(CachedToy):
    """Asks each call twice: what the suite sees is always a hit."""

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        super()._generate(messages, stop=stop, **kwargs)
        return _hit(super()._generate(messages, stop=stop, run_manager=run_manager, **kwargs))

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        await super()._agenerate(messages, stop=stop, **kwargs)
        return _hit(
            await super()._agenerate(messages, stop=stop, run_manager=run_manager, **kwargs)
        )

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        super()._generate(messages, stop=stop, **kwargs)
        *chunks, last = super()._stream(messages, stop=stop, run_manager=run_manager, **kwargs)
        yield from (*chunks, _hit(ChatResult(generations=[last])).generations[0])

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        await super()._agenerate(messages, stop=stop, **kwargs)
        async for chunk in super()._astream(messages, stop=stop, run_manager=run_manager, **kwargs):
            yield chunk


def _hit(result):
    assert result.generations[0].message.response_metadata["stemma"]["hit"] is True
    return result


class TestUnits(ChatModelUnitTests):
    @property
    def chat_model_class(self):
        return CachedToy


class TestCold(ChatModelIntegrationTests):
    @property
    def chat_model_class(self):
        return CachedToy

    @property
    def model_override_value(self):
        return "toy-2"


class TestWarm(TestCold):
    @property
    def chat_model_class(self):
        return WarmToy
