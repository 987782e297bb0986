# The kernel of a context for bash: one bash that lives as long as the context, and gets one
# cell after the other. Messages are those of kernel.py.
import codecs
import json
import os
import select
import signal
import subprocess
import sys
import time

# The loop of the bash: a cell comes with a zero byte at its end on descriptor 8, its status
# goes to 9. A trap has an interrupt end the cell, and not the loop.
LOOP = r"""
__cofferdam_cell() { eval "$1"; }
trap 'return 130 2>/dev/null' INT
while IFS= read -r -d '' -u 8 __cofferdam_text; do
  __cofferdam_cell "$__cofferdam_text" 8<&- 9>&-
  printf '%s\0' "$?" >&9
done
"""


# GRACE is how long a cell may take to end of an interrupt, in seconds.
GRACE = 1.5


class Shell:
    def __init__(self):
        self.wire = os.dup(1)
        os.set_inheritable(self.wire, False)
        self.pending, self.count, self.cell = b"", 0, None
        self.struck = 0.0  # when the last interrupt came
        signal.signal(signal.SIGINT, self.strike)
        cells, self.cells = os.pipe()
        self.status, status = os.pipe()
        self.out, out = os.pipe()
        self.err, err = os.pipe()

        def place():  # 8 and 9 of the bash
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            high = [os.dup2(cells, 100), os.dup2(status, 101)]
            os.dup2(high[0], 8)
            os.dup2(high[1], 9)

        self.bash = subprocess.Popen(
            ["/bin/bash", "--norc", "--noprofile", "-c", LOOP], stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=place, pass_fds=(8, 9)
        )
        for fd in (cells, status, out, err):
            os.close(fd)
        self.texts = {self.out: ("stdout", decoder()), self.err: ("stderr", decoder())}

    def strike(self, *_):
        self.struck = time.monotonic()  # bash has had the signal itself: it is of the same group

    def send(self, kind, **fields):
        fields["kind"] = kind
        if self.cell is not None:
            fields["cell"] = self.cell
        data = memoryview(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        while data:
            data = data[os.write(self.wire, data) :]

    def pass_on(self, fd):
        kind, text = self.texts[fd]
        data = os.read(fd, 32 << 10)
        if not data:
            del self.texts[fd]
            return
        if out := text.decode(data):
            self.send(kind, text=out)

    def request(self):
        data = os.read(0, 1 << 20)
        if not data:
            self.bash.kill()
            sys.exit(0)
        self.pending += data
        *lines, self.pending = self.pending.split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request.get("op") == "run":
                self.run(request)
            elif request.get("op") == "begin":
                text = "".join(f"export {n}={quoted(v)}\n" for n, v in (request.get("env") or {}).items())
                if request.get("dir"):
                    text += f"cd {quoted(request['dir'])} 2>/dev/null\n"
                self.feed(text)
                self.await_status()

    def feed(self, text):
        data = memoryview(text.replace("\0", "").encode("utf-8", "surrogateescape") + b"\0")
        while data:  # a long cell does not fit into the pipe before bash reads it
            data = data[os.write(self.cells, data) :]

    def run(self, request):
        self.cell, self.struck = request["cell"], 0.0
        self.count += 1
        self.send("begin")
        env = request.get("env") or {}
        before = "".join(f"__cofferdam_had_{i}=${{{n}+x}}; __cofferdam_was_{i}=${{{n}-}}; export {n}={quoted(v)}\n" for i, (n, v) in enumerate(env.items()) if plain(n))
        after = "".join(
            f"if [ -n \"$__cofferdam_had_{i}\" ]; then {n}=$__cofferdam_was_{i}; else unset {n}; fi; unset __cofferdam_had_{i} __cofferdam_was_{i}\n"
            for i, n in enumerate(env)
            if plain(n)
        )
        if before:
            self.feed(before)
            self.await_status()
        self.feed(request["code"])
        code = self.await_status()
        if after:
            self.feed(after)
            self.await_status()
        if code is None:
            self.send("error", name="KernelDied", value="the shell has ended", traceback="")
        elif self.struck:
            self.send("error", name="KeyboardInterrupt", value="the cell was interrupted", traceback="")
        elif code != 0:
            self.send("error", name="ExitCode", value=f"exit status {code}", traceback="")
        self.send("done", count=self.count)
        self.cell = None
        if code is None:
            sys.exit(0)

    def await_status(self):
        """Passes output on until the cell has ended; None: the shell has."""
        status = b""
        while True:
            ready, _, _ = select.select([self.status, *self.texts], [], [], 0.5)
            if self.struck and time.monotonic() > self.struck + GRACE:
                self.bash.kill()  # a loop of nothing but the shell's own commands hears no interrupt
            for fd in ready:
                if fd != self.status:
                    self.pass_on(fd)
            if self.status in ready:
                data = os.read(self.status, 64)
                status += data
                if not data or status.endswith(b"\0"):
                    self.drain()
                    return int(status[:-1].rsplit(b"\0", 1)[-1] or b"0") if data else None

    def drain(self):
        """What the cell wrote before its end comes before its end."""
        while self.texts:
            ready, _, _ = select.select(list(self.texts), [], [], 0)
            if not ready:
                return
            for fd in ready:
                self.pass_on(fd)


def decoder():
    return codecs.getincrementaldecoder("utf-8")("replace")


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def plain(name):
    return name.isidentifier() and name.isascii()


def main():
    shell = Shell()
    shell.send("ready")
    while True:
        ready, _, _ = select.select([0, *shell.texts], [], [])
        for fd in ready:
            if fd:
                shell.pass_on(fd)
        if 0 in ready:
            shell.request()
