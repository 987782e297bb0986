"""Finds code that starts programs, for where the toolkit's scanner is not installed.

It is a courtesy to whoever wrote the code, not containment: text that is put together at run
time is not seen. The sandbox contains.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

_STARTS: dict[str, frozenset[str]] = {
    "subprocess": frozenset(["Popen", "call", "check_call", "check_output", "getoutput", "getstatusoutput", "run"]),
    "os": frozenset(
        ["popen", "system"]
        + [f"exec{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")]
        + [f"spawn{how}" for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")]
    ),
    "pty": frozenset(["spawn"]),
    "shutil": frozenset(["which"]),
}


@dataclass(frozen=True)
class CodeScanViolation:
    """One place that starts a program."""

    line: int
    column: int
    pattern: str
    message: str


class SandboxCodeViolation(PermissionError):
    """Code was not run, because it starts programs; ``violations`` says where."""

    def __init__(self, violations: list[CodeScanViolation]) -> None:
        self.violations = tuple(violations)
        first = "; ".join(f"line {v.line}:{v.column + 1} {v.pattern}" for v in self.violations[:3])
        more = f"; +{len(violations) - 3} more" if len(violations) > 3 else ""
        super().__init__(f"Sandbox code denied: potential subprocess execution ({first}{more})")


def enforce_no_subprocess_execution(code: str) -> None:
    """Refuses code that starts programs. What is no Python is left to Python."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    found = [
        CodeScanViolation(node.lineno, node.col_offset, what, f"{what} starts or looks for programs")
        for node, what in _findings(tree)
    ]
    if found:
        raise SandboxCodeViolation(found)


def _findings(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    modules: dict[str, str] = {}  # local names of modules
    functions: dict[str, str] = {}  # local names of what starts programs
    for node in _in_order(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                root = name.name.partition(".")[0]
                if root in _STARTS:
                    modules[name.asname or root] = root
        elif isinstance(node, ast.ImportFrom) and node.module:
            root = node.module.partition(".")[0]
            for name in node.names:
                if root in _STARTS and name.name == "*":
                    yield node, f"{root}.*"
                elif name.name in _STARTS.get(root, ()):
                    functions[name.asname or name.name] = f"{root}.{name.name}"
        elif isinstance(node, ast.Call):
            what = _called(node.func, modules, functions)
            if what:
                yield node, what


def _in_order(node: ast.AST) -> Iterator[ast.AST]:
    """A tree's nodes, each before its children; nesting, however deep, takes no stack."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(list(ast.iter_child_nodes(one))))


def _called(function: ast.expr, modules: dict[str, str], functions: dict[str, str]) -> str | None:
    if isinstance(function, ast.Name):
        return functions.get(function.id)
    if not isinstance(function, ast.Attribute):
        return None
    module = None
    if isinstance(function.value, ast.Name):
        module = modules.get(function.value.id, function.value.id)
    elif isinstance(function.value, ast.Call):
        module = _imported(function.value)
    return f"{module}.{function.attr}" if function.attr in _STARTS.get(module or "", ()) else None


def _imported(call: ast.Call) -> str | None:
    """The module of __import__("x") or importlib.import_module("x")."""
    f = call.func
    imports = (isinstance(f, ast.Name) and f.id == "__import__") or (
        isinstance(f, ast.Attribute)
        and f.attr == "import_module"
        and isinstance(f.value, ast.Name)
        and f.value.id == "importlib"
    )
    if not imports or not call.args:
        return None
    name = call.args[0]
    return name.value.partition(".")[0] if isinstance(name, ast.Constant) and isinstance(name.value, str) else None
