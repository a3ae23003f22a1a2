"""Nothing that was stored can run: our source has no way to revive it."""

import ast

MODULES = {"pickle", "cPickle", "_pickle", "marshal", "dill", "cloudpickle", "shelve", "joblib"}
MODULES |= {"yaml", "jsonpickle"}
CALLS = {"eval", "exec", "compile", "__import__"}
REVIVERS = {("langchain_core.load", "loads"), ("langchain_core.load", "load")}


def offences(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.split(".")[0] in MODULES]
        elif isinstance(node, ast.ImportFrom):
            module = str(node.module)
            if module.split(".", maxsplit=1)[0] in MODULES:
                found.append(module)
            found += [f"{module}.{a.name}" for a in node.names if (module, a.name) in REVIVERS]
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS
        ):
            found.append(node.func.id)
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            found.append("allow_pickle")
    return found


def test_our_source_neither_revives_nor_evaluates(source):
    seen = 0
    for file, tree in source.files():
        seen += 1
        assert offences(tree) == [], f"{source.root.name}/{file}"
    assert seen


def test_each_way_would_be_noticed():
    for line in (
        "import pickle",
        "from marshal import loads",
        "import yaml",
        "eval('1')",
        "exec('1')",
        "from langchain_core.load import loads",
        "np.load(f, allow_pickle=True)",
    ):
        assert len(offences(ast.parse(line))) == 1, line
