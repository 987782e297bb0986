"""Two examples of the OpenAI Agents SDK, with its own model that follows a script: an agent
whose shell is in a sandbox, and one whose tool is a code interpreter. Each line that is
printed is a thing that worked."""

import asyncio
import os
import sys

from agents import Agent, RunConfig, Runner, function_tool, set_tracing_disabled
from agents.extensions.sandbox.e2b.sandbox import E2BSandboxClient, E2BSandboxClientOptions
from agents.run_config import SandboxRunConfig
from agents.sandbox.sandbox_agent import SandboxAgent
from agents.testing import ScriptedModel, assistant_message, function_call
from e2b_code_interpreter import Sandbox

set_tracing_disabled(True)


def script(tool, *calls):
    """A model that makes one call after the other, and then says that it is done."""
    steps = [[function_call(tool, arguments, call_id=f"call-{i}")] for i, arguments in enumerate(calls)]
    return ScriptedModel([*steps, [assistant_message("done")]])


def answers(result):
    """What the tools told the model."""
    return [str(item.output) for item in result.new_items if item.type == "tool_call_output_item"]


async def shell():
    model = script(
        "exec_command",
        {"cmd": "echo 42 > answer.txt && cat answer.txt && id -un"},
        {"cmd": "pip install --quiet iniconfig==2.0.0 && python3 -c 'import iniconfig; print(iniconfig.__name__)'"},
        {"cmd": "pip install --quiet colorama"},
    )
    client = E2BSandboxClient()
    options = E2BSandboxClientOptions(sandbox_type="e2b", timeout=600, metadata={"policy": "cells"})
    result = await Runner.run(
        SandboxAgent(name="worker", model=model), "What is the answer?", run_config=RunConfig(sandbox=SandboxRunConfig(client=client, options=options))
    )
    wrote, installed, refused = answers(result)
    assert result.final_output == "done" and model.remaining_steps == 0, result.final_output
    assert "42" in wrote and "root" not in wrote, wrote
    assert "iniconfig" in installed and "Blocked" not in installed, installed
    assert "Blocked by cofferdam" in refused and "not on the allowlist" in refused, refused
    assert "Blocked by cofferdam" in str(model.calls[-1].input), "the model has not read why"
    print("ok an agent whose shell is in a sandbox, and which reads why a package is refused", flush=True)


async def interpreter():
    with Sandbox.create(timeout=600, metadata={"policy": "cells"}) as box:

        @function_tool
        def run_python(code: str) -> str:
            """Runs code in a notebook, which keeps what earlier code made."""
            done = box.run_code(code)
            return done.error.traceback if done.error else "".join(done.logs.stdout) + (done.text or "")

        model = script(
            "run_python",
            {"code": "import pandas as pd\nsales = pd.DataFrame({'month': [1, 2, 3], 'sold': [10, 20, 12]})"},
            {"code": "print('in all'); int(sales.sold.sum())"},
            {"code": "sales.bought"},
        )
        agent = Agent(name="analyst", model=model, tools=[run_python])
        result = await Runner.run(agent, "How much was sold?")
    nothing, total, failed = answers(result)
    assert nothing == "" and total == "in all\n42" and "AttributeError" in failed, (nothing, total, failed)
    print("ok an agent whose tool is a code interpreter, which keeps what its code made", flush=True)


asyncio.run(shell())
asyncio.run(interpreter())
sys.stdout.flush()
os._exit(0)  # as openaiagents.py does
