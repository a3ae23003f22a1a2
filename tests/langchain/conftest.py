"""Chat models that count what reaches them, in the three ways in which models are built."""

import copy
import json
import re
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr, SecretStr


class Scripted(BaseChatModel):
    """Says what it is told to say, and notes each call: the way it was called, and with what.

    A reply is a message, an exception to raise, or a function of the messages. A stream that is to
    break ends its reply with an exception: `[message, exception]`.
    """

    model_name: str = "m"
    temperature: float | None = None
    n: int = 1
    key: SecretStr = SecretStr("k")
    base_url: str | None = None
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    replies: tuple[Any, ...] = Field(default=(), exclude=True)
    _calls: list[Any] = PrivateAttr(default_factory=list)

    @property
    def calls(self):
        return self._calls

    @property
    def _llm_type(self):
        return "scripted"

    @property
    def _identifying_params(self):
        return {name: getattr(self, name) for name in ("model_name", "temperature", "n")}

    def bind_tools(self, tools, *, tool_choice=None, **kwargs):
        written = [{"scripted": convert_to_openai_tool(tool)} for tool in tools]
        return self.bind(tools=written, tool_choice=tool_choice, **kwargs)

    def said(self, way, messages, stop, kwargs):
        self.calls.append((way, [m.model_copy() for m in messages], {"stop": stop, **kwargs}))
        if not self.replies:
            return AIMessage(f"{self.model_name} to {messages[-1].text}, call {len(self.calls)}")
        reply = self.replies[(len(self.calls) - 1) % len(self.replies)]
        return reply(messages) if callable(reply) else reply

    def result(self, said):
        if isinstance(said, list):
            said = said[-1]
        if isinstance(said, BaseException):
            raise said
        return ChatResult(
            generations=[ChatGeneration(message=said.model_copy(deep=True)) for _ in range(self.n)],
            llm_output={"provider": "scripted"},
        )

    def chunks(self, said):
        message, failure = said if isinstance(said, list) else (said, None)
        if isinstance(message, BaseException):
            raise message
        content = message.content
        pieces = re.findall(r".", content, re.DOTALL) if isinstance(content, str) else content
        for piece in pieces:
            part = piece if isinstance(content, str) else [piece]
            yield ChatGenerationChunk(message=AIMessageChunk(part))
        if failure is not None:
            raise failure
        empty = "" if isinstance(content, str) else []
        for index, call in enumerate(message.tool_calls):
            args = json.dumps(call["args"])
            for start, named in ((0, call), (len(args) // 2, {"name": None, "id": None})):
                end = len(args) // 2 if start == 0 else len(args)
                part = tool_call_chunk(
                    name=named["name"], id=named["id"], args=args[start:end], index=index
                )
                yield ChatGenerationChunk(message=AIMessageChunk(empty, tool_call_chunks=[part]))
        last = AIMessageChunk(
            empty,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            additional_kwargs=copy.deepcopy(message.additional_kwargs),
        )
        yield ChatGenerationChunk(message=last, generation_info={"provider": "scripted"})

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        return self.result(self.said("generate", messages, stop, kwargs))


class Streaming(Scripted):
    """Streams, too; its async twins run in threads."""

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self.chunks(self.said("stream", messages, stop, kwargs)):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


class Native(Streaming):
    """Has async functions of its own."""

    async def _agenerate(self, messages, stop=None, run_manager=None, **kwargs):
        return self.result(self.said("agenerate", messages, stop, kwargs))

    async def _astream(self, messages, stop=None, run_manager=None, **kwargs):
        for chunk in self.chunks(self.said("astream", messages, stop, kwargs)):
            if run_manager is not None:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk


KINDS = {"whole": Scripted, "streaming": Streaming, "native": Native}


@pytest.fixture(scope="session")
def scripted():
    """Makes a scripted model: of a kind, with its replies and fields."""

    def make(kind="streaming", *replies, **fields):
        return KINDS[kind](replies=replies, **fields)

    return make


@pytest.fixture
def acting():
    """A reply that calls tools, round by round, and then says what came of it.

    Each round is the calls of one reply: `{"id": "1"}` by the names of the tools, or a list of
    pairs where one is called twice. The ids of the calls are new each time.
    """

    def make(*rounds):
        def reply(messages):
            turns = [m.type for m in messages]
            since = messages[len(turns) - turns[::-1].index("human") :]
            done = sum(m.type == "ai" for m in since)
            if done == len(rounds):
                said = ", ".join(m.text for m in since if m.type == "tool")
                return AIMessage(f"It says: {said}")
            named = rounds[done].items() if isinstance(rounds[done], dict) else rounds[done]
            calls = [
                {"name": name, "args": args, "id": f"call-{uuid4()}", "type": "tool_call"}
                for name, args in named
            ]
            return AIMessage("", tool_calls=calls)

        return reply

    return make
