"""smolagents' own executor for E2B, with a model that follows a script. Each line that is
printed is a thing that worked."""

import os
import sys

from smolagents import ChatMessage, CodeAgent, Model


class Script(Model):
    """A model whose answers are written down."""

    def __init__(self, steps):
        super().__init__()
        self.left = list(steps)
        self.seen = []

    def generate(self, messages, **kwargs):
        self.seen = [str(m.content) for m in messages]
        return ChatMessage(role="assistant", content="Thought: go on\n<code>\n" + self.left.pop(0) + "\n</code>")


model = Script(["fibonacci = [0, 1]\nfor _ in range(18):\n    fibonacci.append(sum(fibonacci[-2:]))\nprint(fibonacci[-1])", "final_answer(fibonacci[19])"])
with CodeAgent(tools=[], model=model, executor_type="e2b") as agent:
    answer = agent.run("What is the 20th number of Fibonacci?")
assert answer == 4181, answer
assert "4181" in "\n".join(model.seen)
print("ok smolagents' executor keeps what a step made for the next", flush=True)
sys.stdout.flush()
os._exit(0)
