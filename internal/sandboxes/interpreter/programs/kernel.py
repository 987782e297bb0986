# The Python kernel of a context: ipykernel's shell, with the wire of a Jupyter kernel
# replaced by lines of JSON on a pipe. The host starts it with its text on standard input,
# and goes on there with one request a line; what it has to say goes out as one message a
# line. Messages are described in message.go.
import asyncio
import array
import fcntl
import importlib
import json
import numbers
import os
import signal
import sys
import termios
import threading
import time


class Wire:
    """Writes messages to the host. Threads share it."""

    def __init__(self):
        self.fd = os.dup(1)
        os.set_inheritable(self.fd, False)
        self.pid = os.getpid()
        self.lock = threading.RLock()
        self.cell = None
        self.writing = False
        self.struck = False  # an interrupt came while the main thread was writing

    def send(self, kind, **fields):
        if os.getpid() != self.pid:
            return  # a child that was forked has no say
        fields["kind"] = kind
        if self.cell is not None:
            fields["cell"] = self.cell
        try:
            data = json.dumps(fields, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError):  # the second is of numbers that JSON has not
            data = json.dumps(finite(fields), allow_nan=False, ensure_ascii=False, default=str)
        data = marked(data).encode("utf-8", "replace") + b"\n"
        main = threading.current_thread() is threading.main_thread()
        with self.lock:
            self.writing = self.writing or main
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self.fd, view) :]
            finally:
                if main:
                    self.writing = False
        if main and self.struck:
            self.struck = False
            raise KeyboardInterrupt


def finite(value):
    """A value of which JSON has all."""
    if isinstance(value, numbers.Real) and not isinstance(value, (bool, int)):
        return float(value) if value - value == 0 else None
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(v) for v in value]
    return value


class Stream:
    """sys.stdout or sys.stderr: text is collected for a moment, so that a line is one message."""

    encoding, errors, newlines, closed, mode = "utf-8", "replace", None, False, "w"
    most = 32 << 10

    def __init__(self, wire, kind, fd, name):
        self.wire, self.kind, self.fd, self.name = wire, kind, fd, name
        self.parts, self.size = [], 0
        self.lock = threading.RLock()
        self.some = threading.Event()
        self.buffer = Bytes(self)
        threading.Thread(target=self.tend, daemon=True).start()

    def tend(self):
        while True:
            self.some.wait()
            time.sleep(0.03)
            self.flush()

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        if os.getpid() != self.wire.pid:
            data = text.encode("utf-8", "replace")
            while data:
                data = data[os.write(self.fd, data) :]
            return len(text)
        with self.lock:
            self.parts.append(text)
            self.size += len(text)
            full = self.size >= self.most
        if full:
            self.flush()
        elif not self.some.is_set():
            self.some.set()
        return len(text)

    def flush(self):
        if os.getpid() != self.wire.pid:
            return
        with self.lock:
            text, self.parts, self.size = "".join(self.parts), [], 0
            self.some.clear()
            for at in range(0, len(text), self.most):
                self.wire.send(self.kind, text=text[at : at + self.most])

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def fileno(self):
        return self.fd

    def isatty(self):
        return False

    def readable(self):
        return False

    def writable(self):
        return True

    def seekable(self):
        return False

    def close(self):
        self.flush()

    def reconfigure(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.flush()


class Bytes:
    """The binary side of a Stream."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, data):
        self.stream.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self):
        self.stream.flush()

    def fileno(self):
        return self.stream.fd

    def writable(self):
        return True


class Capture:
    """What programs write that the cell starts: descriptor 1 or 2 is a pipe, and this reads it."""

    def __init__(self, wire, kind, fd):
        import codecs

        self.wire, self.kind = wire, kind
        self.source, out = os.pipe()
        os.dup2(out, fd)
        os.close(out)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.busy = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            data = os.read(self.source, 1)  # what comes next is taken while busy is set
            self.busy = True
            if self.waiting():
                data += os.read(self.source, 32 << 10)
            text = self.decoder.decode(data)
            if text:
                self.wire.send(self.kind, text=text)
            self.busy = False

    def waiting(self):
        count = array.array("i", [0])
        fcntl.ioctl(self.source, termios.FIONREAD, count)
        return count[0]

    def drain(self):
        for _ in range(200):
            if not self.busy and not self.waiting():
                return
            time.sleep(0.001)


def session_of(wire):
    """A Jupyter session whose messages go over the wire."""
    from jupyter_client.session import Session

    class PipeSession(Session):
        def send(self, stream, msg_or_type, content=None, parent=None, ident=None, **_):
            if isinstance(msg_or_type, dict):
                kind, content = msg_or_type["header"]["msg_type"], msg_or_type["content"]
            else:
                kind = msg_or_type
            if kind == "stream":
                wire.send("stderr" if content["name"] == "stderr" else "stdout", text=content["text"])
            elif kind in ("execute_result", "display_data", "update_display_data"):
                data = {form: as_text(value) for form, value in (content.get("data") or {}).items()}
                if data:
                    wire.send("result", main=kind == "execute_result", data=data)
            elif kind == "error":
                wire.failure = dict(name=str(content["ename"]), value=str(content["evalue"]), traceback="\n".join(content["traceback"]))
            return None

    return PipeSession(key=b"")


class Host:
    """The loop: takes requests, runs cells."""

    def __init__(self, wire):
        self.wire = wire
        self.running = False
        self.cells = 0  # that were taken and have not ended
        self.asked = False  # to say when there are none
        self.pending = b""
        wire.failure = None
        signal.signal(signal.SIGINT, self.strike)
        self.captures = [Capture(wire, "stdout", 1), Capture(wire, "stderr", 2)]
        sys.stdout = sys.__stdout__ = Stream(wire, "stdout", 1, "<stdout>")
        sys.stderr = sys.__stderr__ = Stream(wire, "stderr", 2, "<stderr>")
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.stdin = os.dup(0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # a program that a cell starts has no input
        os.close(nothing)
        os.set_blocking(self.stdin, False)
        self.kernel = self.make()

    def strike(self, *_):
        if not self.running:
            return
        if self.wire.writing:
            self.wire.struck = True
            return
        raise KeyboardInterrupt

    def make(self):
        import logging
        from types import SimpleNamespace

        from ipykernel.ipkernel import IPythonKernel
        from tornado.ioloop import IOLoop

        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

        async def build():
            kernel = IPythonKernel(session=session_of(self.wire), iopub_socket=None, user_ns={}, log=logging.getLogger("ipykernel"))
            kernel.io_loop = IOLoop.current()
            kernel.shell_channel_thread = SimpleNamespace(parent_thread=threading.main_thread())
            return kernel

        kernel = self.loop.run_until_complete(build())
        shell = kernel.shell
        shell.displayhook.pub_socket = shell.display_pub.pub_socket = None
        shell.history_manager.enabled = False
        # What a cell's error is is told once, by its end.
        shell._showtraceback = lambda etype, evalue, stb: setattr(shell, "_last_traceback", stb)
        add_formatters(shell)
        sys.meta_path.insert(0, Saved())
        system = shell.system

        def run(*args, **kwargs):
            try:
                return system(*args, **kwargs)
            finally:
                importlib.invalidate_caches()  # it may have installed what the cell imports next

        shell.system = run
        return kernel

    def run(self):
        self.loop.add_reader(self.stdin, self.readable)
        self.wire.send("ready")
        while not self.loop.is_closed():
            try:
                self.loop.run_forever()
                return
            except KeyboardInterrupt:
                continue

    def readable(self):
        try:
            data = os.read(self.stdin, 1 << 20)
        except BlockingIOError:
            return
        if not data:
            self.loop.stop()
            return
        self.pending += data
        *lines, self.pending = self.pending.split(b"\n")
        for line in lines:
            request = json.loads(line)
            if request.get("op") == "run":
                self.cells += 1
                task = self.loop.create_task(self.cell(request))
                task.add_done_callback(self.settled)
            elif request.get("op") == "begin":
                self.begin(request)
            elif request.get("op") == "warm":
                self.loop.create_task(self.warm())
            elif request.get("op") == "idle":
                self.asked = True
                self.tell_idle()

    def tell_idle(self):
        if self.asked and not self.cells:
            self.asked = False
            self.wire.send("ready")

    async def warm(self):
        """Does once what takes long only once."""
        try:
            import matplotlib.pyplot
            import numpy
            import pandas

            await self.kernel.do_execute("", silent=True, store_history=False, user_expressions={}, allow_stdin=False)
            await self.kernel.do_execute("0", silent=True, store_history=False, user_expressions={}, allow_stdin=False)
            self.kernel.shell.display_formatter.format(pandas.DataFrame({"a": numpy.arange(1)}))
            figure = matplotlib.pyplot.figure()
            figure.add_subplot().plot([1, 2])
            self.kernel.shell.display_formatter.format(figure)
            matplotlib.pyplot.close(figure)
        except ImportError:
            pass  # a template that has less
        self.kernel.shell.user_ns.pop("_", None)
        self.wire.send("ready")

    def begin(self, request):
        """What a kernel learns that was started before its sandbox had an owner."""
        os.environ.update(request.get("env") or {})
        if request.get("dir"):
            try:
                os.chdir(request["dir"])
            except OSError:
                pass

    async def cell(self, request):
        wire = self.wire
        wire.cell, wire.failure = request["cell"], None
        wire.send("begin")  # first: of a cell that has not begun no end is told
        code, env = request.get("code") or "", request.get("env") or {}
        before = {name: os.environ.get(name) for name in env}
        importlib.invalidate_caches()
        self.running = True
        try:
            os.environ.update(env)
            self.kernel.shell._last_traceback = None
            reply = await self.kernel.do_execute(code, silent=False, store_history=True, user_expressions={}, allow_stdin=False)
        finally:
            self.running = False
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
        if reply["status"] == "error" and wire.failure is None:
            wire.failure = dict(name=reply.get("ename", "Error"), value=reply.get("evalue", ""), traceback="\n".join(reply.get("traceback") or []))

    def settled(self, task):
        """Tells the end of a cell, however it came."""
        self.running = False
        wire = self.wire
        if not task.cancelled() and task.exception() is not None and wire.failure is None:
            broke = task.exception()
            wire.failure = dict(name=type(broke).__name__, value=str(broke), traceback="")
        elif task.cancelled() and wire.failure is None:
            wire.failure = dict(name="CancelledError", value="", traceback="")
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass  # a cell may have put something else in its place
        for capture in self.captures:
            capture.drain()
        if wire.failure is not None:
            wire.send("error", **wire.failure)
        wire.send("done", count=max(0, self.kernel.shell.execution_count - 1))
        wire.cell = None
        self.cells -= 1
        self.tell_idle()


def main():
    wire = Wire()
    try:
        host = Host(wire)
    except ImportError as missing:
        wire.send("broken", text="the sandbox has no %s: create it from the template code-interpreter, or install ipykernel" % (missing.name or "ipykernel"))
        return
    host.run()
