"""What an import costs and reaches, each time in a fresh interpreter."""

import json
import subprocess
import sys

HEAVY = (
    "langchain", "langchain_core", "langchain_community", "langchain_openai", "langchain_chroma",
    "langgraph", "langsmith", "llama_index", "onnxruntime", "tokenizers", "torch", "transformers",
    "chromadb", "networkx", "tiktoken", "psycopg", "httpx", "requests", "openai", "typer", "rich",
    "pydantic", "pytest", "sqlite3", "usearch", "xllamacpp",
)  # fmt: skip

WATCHED = """
import json, os, sys

touched = []

def hook(event, args):
    if event.startswith("socket."):
        touched.append(event)
    elif event == "open":
        path, mode, flags = args
        writes = mode is not None and set(mode) & set("wax+")
        if writes or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            touched.append(f"open {path} for writing")
    elif event in ("sqlite3.connect", "subprocess.Popen", "os.mkdir", "os.remove"):
        touched.append(event)

sys.addaudithook(hook)
"""

TOLD = """
print(json.dumps({"modules": sorted({name.split(".")[0] for name in sys.modules}),
                  "touched": touched}))
"""


def after(code: str) -> dict:
    """What is loaded, and what was touched, once the code has run."""
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", f"{WATCHED}\n{code}\n{TOLD}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_core_loads_nothing_heavy_and_opens_nothing():
    seen = after("import stemma")
    assert not set(HEAVY) & set(seen["modules"])
    assert seen["touched"] == []
    own = {"stemma", "numpy", "__main__"}
    assert set(seen["modules"]) - own - set(sys.stdlib_module_names) <= {"_distutils_hack"} | {
        name for name in seen["modules"] if name.startswith("__editable__")
    }


def test_the_hook_would_notice_what_it_looks_for(tmp_path):
    seen = after(
        f"import socket\nsocket.socket().close()\nopen({str(tmp_path / 'x')!r}, 'w').close()\n"
        "import sqlite3\nsqlite3.connect(':memory:').close()"
    )
    assert "socket.__new__" in seen["touched"]
    assert any(what.endswith("x for writing") for what in seen["touched"])
    assert "sqlite3.connect" in seen["touched"]


def test_a_cache_in_memory_touches_nothing_and_loads_no_model():
    seen = after(
        "import stemma\n"
        "cache = stemma.open(tenant='me', embedder='hashing')\n"
        "cache.answers.get_or_compute('q', lambda: 'a')\n"
        "assert cache.answers.lookup('q').hit\n"
        "cache.close()"
    )
    assert seen["touched"] == []
    assert not {"onnxruntime", "tokenizers", "networkx", "sqlite3"} & set(seen["modules"])


def test_opening_a_file_touches_that_file_and_no_other(tmp_path):
    file = tmp_path / "answers.db"
    seen = after(
        f"import stemma\nwith stemma.open({str(file)!r}, tenant='me', embedder=None) as cache:\n"
        "    cache.answers.get_or_compute('q', lambda: 'a')"
    )
    written = [what for what in seen["touched"] if what.startswith("open ")]
    assert all(str(file) in what for what in written)
    assert not [what for what in seen["touched"] if what.startswith("socket.")]
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "answers.db",
        "answers.db-leases",
        "answers.db-stemma",
    ]


def test_the_langchain_package_loads_langchain_when_a_face_is_named():
    before = after("import stemma_langchain\nassert 'LLMCache' in dir(stemma_langchain)")
    assert not set(HEAVY) & set(before["modules"])
    assert before["touched"] == []
    named = after("from stemma_langchain import LLMCache")
    assert "langchain_core" in named["modules"]
    assert not {"chromadb", "onnxruntime", "torch", "transformers", "langchain_openai"} & set(
        named["modules"]
    )


def test_without_langchain_a_face_says_what_to_install():
    seen = after(
        "sys.modules['langchain_core'] = None\n"
        "import stemma, stemma_langchain\n"
        "try:\n"
        "    stemma_langchain.CachedChain\n"
        "except stemma.MissingDependency as error:\n"
        "    assert \"pip install 'stemma-cache[langchain]'\" in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')"
    )
    assert "stemma_langchain" in seen["modules"]


def test_without_langchains_agents_the_middleware_says_what_to_install():
    seen = after(
        "sys.modules['langchain'] = None\n"
        "import stemma, stemma_langchain\n"
        "stemma_langchain.CachedChain, stemma_langchain.cacheable\n"
        "try:\n"
        "    stemma_langchain.CacheMiddleware\n"
        "except stemma.MissingDependency as error:\n"
        "    assert \"pip install 'langchain>=1.0,<2'\" in str(error), error\n"
        "else:\n"
        "    raise SystemExit('no error')"
    )
    assert "stemma_langchain" in seen["modules"]


def test_without_its_packages_the_command_says_what_to_install():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nsys.modules['typer'] = None\nimport stemma.cli.main",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "the stemma command needs typer: pip install 'stemma-cache[cli]'"
    )
