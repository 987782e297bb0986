"""What a user of smolagents does: an agent whose model (here one that says what it
was told to) calls a tool, which runs its commands in a sandbox. Each line that is
printed is a thing that worked."""

import os
import sys

from e2b import CommandExitException, Sandbox
from smolagents import ChatMessage, Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction


class Shell(Tool):
    name = "shell"
    description = "Runs a command in a sandbox and returns what it printed."
    inputs = {"command": {"type": "string", "description": "the command"}}
    output_type = "string"

    def __init__(self, box):
        super().__init__()
        self.box = box

    def forward(self, command: str) -> str:
        try:
            return self.box.commands.run(command).stdout
        except CommandExitException as failed:
            return failed.stderr


class Script(Model):
    """A model that calls the tool with one command after the other."""

    def __init__(self, commands):
        super().__init__()
        self.left = list(commands)
        self.seen = []

    def generate(self, messages, **kwargs):
        self.seen = [str(m.content) for m in messages]
        if self.left:
            name, arguments = "shell", {"command": self.left.pop(0)}
        else:
            name, arguments = "final_answer", {"answer": "done"}
        call = ChatMessageToolCall(id="1", type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments))
        return ChatMessage(role="assistant", content="", tool_calls=[call])


box = Sandbox.create(metadata={"policy": "list"}, timeout=600)
model = Script(["pip install --quiet iniconfig==2.0.0 && python3 -c 'import iniconfig; print(iniconfig.__name__)'", "pip install --quiet colorama"])
assert ToolCallingAgent(tools=[Shell(box)], model=model).run("install two packages") == "done"
seen = "\n".join(model.seen)
assert "iniconfig" in seen and "Blocked by cofferdam" in seen, seen
print("ok an agent's tool installs by the policy, and reads why not", flush=True)
box.kill()

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
