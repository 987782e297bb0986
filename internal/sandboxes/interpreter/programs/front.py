# What the kernels share that have another program run the cells: requests come in, messages
# go out, and what the program writes is passed on. Messages are those of kernel.py.
import codecs
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time

# How long, in seconds, a cell may take to end of an interrupt, and how long the rest of a
# line is waited for, so that a line is one message.
GRACE, REST = 1.5, 0.02
MOST = 32 << 10
PR_SET_PDEATHSIG = 1
prctl = ctypes.CDLL(None).prctl


class Front:
    """A program that lives as long as the context, and gets one cell after the other."""

    def __init__(self):
        self.wire = os.dup(1)
        os.set_inheritable(self.wire, False)
        self.pending, self.count, self.cell = b"", 0, None
        self.struck = 0.0  # when the last interrupt came
        self.owner = os.getpid()
        signal.signal(signal.SIGINT, self.strike)
        self.status, status = os.pipe()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        self.program = self.start(out, err, status)
        for fd in (status, out, err):
            os.close(fd)
        self.texts = {self.out: ("stdout", decoder()), self.err: ("stderr", decoder())}

    def tie(self):
        """In the program, before it begins: it ends with its owner, however that one ends."""
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self.owner:
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def strike(self, *_):
        self.struck = time.monotonic()  # the program has had the signal itself: it is of the same group

    def send(self, kind, **fields):
        fields["kind"] = kind
        if self.cell is not None:
            fields["cell"] = self.cell
        write_all(self.wire, marked(json.dumps(fields, ensure_ascii=False)).encode("utf-8", "replace") + b"\n")

    def pass_on(self, fd):
        kind, text = self.texts[fd]
        data = os.read(fd, MOST)
        if not data:
            del self.texts[fd]
            return
        while not data.endswith(b"\n") and len(data) < MOST and select.select([fd], [], [], REST)[0]:
            more = os.read(fd, MOST - len(data))
            if not more:
                break
            data += more
        if out := text.decode(data):
            self.send(kind, text=out)

    def listen(self):
        """Takes what the host sends. When nobody can send any more, all is over."""
        data = os.read(0, 1 << 20)
        if not data:
            self.program.kill()
            sys.exit(0)
        self.pending += data

    def serve(self):
        self.send("ready")
        while True:
            while b"\n" in self.pending:
                line, _, self.pending = self.pending.partition(b"\n")
                self.handle(json.loads(line))
            ready, _, _ = select.select([0, *self.texts], [], [])
            for fd in ready:
                if fd:
                    self.pass_on(fd)
            if 0 in ready:
                self.listen()

    def handle(self, request):
        if request.get("op") == "run":
            self.run(request)
        elif request.get("op") == "begin":
            self.quietly(self.begins(request.get("env") or {}, request.get("dir") or ""))
        elif request.get("op") == "idle":
            self.send("ready")  # what came before has ended

    def run(self, request):
        self.cell, self.struck = request["cell"], 0.0
        self.count += 1
        self.send("begin")
        before, after = self.around({n: v for n, v in (request.get("env") or {}).items() if plain(n)})
        self.quietly(before)
        self.feed(request.get("code") or "")
        failure = self.await_end()
        if self.program.poll() is None:
            self.quietly(after)
        else:
            failure = dict(name="KernelDied", value="%s has ended" % self.name, traceback="")
        if failure and self.struck and self.program.poll() is None:
            failure = dict(name="KeyboardInterrupt", value="the cell was interrupted", traceback="")
        if failure:
            self.send("error", **failure)
        self.send("done", count=self.count)
        self.cell = None
        if self.program.poll() is not None:
            sys.exit(0)

    def quietly(self, text):
        """Runs what is no cell."""
        if text:
            self.feed(text, quiet=True)
            self.await_end()

    def await_end(self):
        """Passes output on until the program has ended what it was fed, or itself. Returns
        the failure that it told, or None."""
        while True:
            ready, _, _ = select.select([0, self.status, *self.texts], [], [], 0.5)
            if self.struck and time.monotonic() > self.struck + GRACE:
                self.program.kill()  # a loop of nothing but the program's own may hear no interrupt
            for fd in ready:
                if fd in self.texts:
                    self.pass_on(fd)
            if 0 in ready:
                self.listen()
            if self.status in ready:
                data = os.read(self.status, 64 << 10)
                if not data:
                    self.program.wait()
                ended, failure = self.told(data)
                if ended or not data:
                    self.drain()
                    return failure
            elif self.program.poll() is not None:  # and a program of its own holds its pipes
                self.drain()
                return None

    def drain(self):
        """What the cell wrote before its end comes before its end."""
        while self.texts:
            ready, _, _ = select.select(list(self.texts), [], [], 0)
            if not ready:
                return
            for fd in ready:
                self.pass_on(fd)


def write_all(fd, data):
    view = memoryview(data)
    while view:  # what is long does not fit into a pipe before somebody reads it
        view = view[os.write(fd, view) :]


def decoder():
    return codecs.getincrementaldecoder("utf-8")("replace")


def plain(name):
    return name.isidentifier() and name.isascii()
