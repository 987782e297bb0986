"""The toolkit's policy document, branch by branch.

research-agent.yaml is a document of the agent-sandbox toolkit, as its documentation shows it:
what code is refused, which hosts and tools a session has, and its limits. This program has the
provider make a session under it, with the packages of allowed-packages.yaml beside it, and
prints what each branch comes to. sandbox-config.yaml is the third document: a sandbox's
configuration, which a plain Sandbox takes as it is.

    pip install cofferdam pyyaml
    python3 examples/research_agent.py

docs/policy-compatibility.md has its output.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from cofferdam import Sandbox
from cofferdam.agt import CofferdamSandboxProvider, SandboxCodeViolation
from cofferdam.errors import InstallRefused

HERE = Path(__file__).resolve().parent


def fetch_arxiv(query: str) -> list[str]:
    """Papers about something."""
    return [f"a paper about {query}"]


def delete_everything() -> str:
    """What no session should be able to call."""
    raise AssertionError("it was called")


def main() -> None:
    """A line for each branch."""
    packages = yaml.safe_load((HERE / "allowed-packages.yaml").read_text())
    tools = {"fetch_arxiv": fetch_arxiv, "delete_everything": delete_everything}
    with CofferdamSandboxProvider(tools=tools, extra=packages) as provider:
        session = provider.create_session("research", policy=HERE / "research-agent.yaml")

        def run(code: str) -> str:
            done = provider.execute_code("research", session.session_id, code)
            assert done.result is not None
            return (done.result.stdout + done.result.stderr).strip().splitlines()[-1]

        print("code allowed:", run("print(6 * 7)"))
        try:
            run("import subprocess")
        except PermissionError as e:
            print("code denied:", e)
        try:
            run("import os; os.system('id')")
        except SandboxCodeViolation as e:
            print("code that starts programs:", e.violations[0].pattern)

        name = "import socket; print(socket.gethostbyname({!r}) != '')"
        print("host allowed:", run(name.format("api.github.com")))
        print("host blocked:", run(name.format("example.com")))
        print("address blocked:", run("import socket; socket.create_connection(('192.0.2.1', 443), timeout=5)"))

        call = "from _tool_client import call_tool; print({})"
        print("tool allowed:", run(call.format("call_tool('fetch_arxiv', query='walls')")))
        print("tool denied:", run(call.format("call_tool('delete_everything')")))

        sandbox = provider.sandbox("research", session.session_id)
        try:
            sandbox.install("leftpad")
        except InstallRefused as e:
            print("package refused:", e.rule)

        usage = sandbox.usage()
        print("limits:", usage.memory_limit >> 20, "MiB,", usage.cpu_count, "processor")
        provider.destroy_session("research", session.session_id)
        try:
            run("print(1)")
        except RuntimeError as e:
            print("ended:", str(e).split(" for ")[0])

    with Sandbox(policy=HERE / "sandbox-config.yaml") as box:
        print("configuration:", box.run(["pwd"], check=True).stdout.strip(), box.info.engine)


if __name__ == "__main__":
    main()
