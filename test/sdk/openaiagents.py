"""What a user of the OpenAI Agents SDK does: its own client of the E2B SDK, with no
change. Each line that is printed is a thing that worked."""

import asyncio
import io
import os
import pathlib
import sys

from agents.extensions.sandbox.e2b.sandbox import E2BSandboxClient, E2BSandboxClientOptions


async def main():
    client = E2BSandboxClient()
    options = E2BSandboxClientOptions(sandbox_type="e2b", timeout=600, metadata={"policy": "list"})
    session = await client.create(options=options)
    async with session:
        said = await session.exec("echo", "hello")
        assert said.exit_code == 0 and said.stdout == b"hello\n", vars(said)
        print("ok a command of an agent's session", flush=True)
        await session.write(pathlib.Path("note.txt"), io.BytesIO(b"42\n"))
        assert (await session.read(pathlib.Path("note.txt"))).read() == b"42\n"
        print("ok a file of an agent's session", flush=True)
        got = await session.exec("pip", "install", "--quiet", "iniconfig==2.0.0")
        assert got.exit_code == 0, vars(got)
        refused = await session.exec("pip", "install", "--quiet", "colorama")
        assert refused.exit_code != 0 and b"Blocked by cofferdam" in refused.stderr, vars(refused)
        print("ok packages of an agent's session, by the policy", flush=True)
    await client.delete(session)


asyncio.run(main())

# The newest SDK's HTTP library has threads of its own, beside which an interpreter
# was seen to abort when it ended after all had worked.
sys.stdout.flush()
os._exit(0)
