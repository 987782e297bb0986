# The kernel of a context for R: see front.py.
import base64
import shutil
import tempfile

# The loop of the R: a cell comes on standard input behind its kind and its length, and what
# becomes of it goes to descriptor 9 as a kind, a length and a text. Figures are drawn into
# files, which the front hands on.
LOOP = r"""
local({
  cells <- file("stdin", "rb")
  out <- file("/dev/fd/9", "wb", raw = TRUE)
  say <- function(kind, text = character()) {
    bytes <- charToRaw(enc2utf8(paste(text, collapse = "\n")))
    writeBin(c(charToRaw(sprintf("%s %d\n", kind, length(bytes))), bytes), out)
    flush(out)
  }
  figures <- Sys.getenv("COFFERDAM_FIGURES")
  Sys.unsetenv("COFFERDAM_FIGURES")
  options(device = function(...) grDevices::png(file.path(figures, "%06d.png"), width = 7, height = 5, units = "in", res = 100))
  show <- function(value, main) {
    shown <- utils::capture.output(if (isS4(value)) methods::show(value) else print(value))
    if (length(shown)) say(if (main) "main" else "value", shown)
  }
  cell <- function(code) {
    steps <- parse(text = code, keep.source = FALSE)
    for (i in seq_along(steps)) {
      got <- withVisible(eval(steps[[i]], globalenv()))
      if (got$visible) show(got$value, i == length(steps))
    }
  }
  warned <- function(w) {
    cat("Warning: ", conditionMessage(w), "\n", sep = "", file = stderr())
    invokeRestart("muffleWarning")
  }
  failed <- function(e) {
    say("name", class(e)[[1]])
    say("text", conditionMessage(e))
    if (!is.null(conditionCall(e))) say("call", deparse(conditionCall(e))[[1]])
  }
  repeat {
    head <- rawToChar(readBin(cells, "raw", 13))
    if (nchar(head) < 13) quit("no")
    code <- rawToChar(readBin(cells, "raw", as.numeric(substr(head, 2, 13))))
    Encoding(code) <- "UTF-8"
    if (substr(head, 1, 1) == "q") {
      try(eval(parse(text = code), globalenv()), silent = TRUE)
    } else {
      tryCatch(withCallingHandlers(cell(code), warning = warned), error = failed, interrupt = function(i) say("name", "interrupt"))
      grDevices::graphics.off()
    }
    flush(stdout())
    say("end")
  }
})
"""


class R(Front):
    name = "R"

    def start(self, out, err, status):
        self.figures = tempfile.mkdtemp(prefix="cofferdam-figures-")
        self.inbox, self.failure = b"", {}

        def place():  # 9 of the R
            self.tie()
            os.dup2(status, 9)

        env = dict(os.environ, COFFERDAM_FIGURES=self.figures)
        argv = ["R", "--no-echo", "--no-restore", "--no-save", "--no-init-file", "-e", LOOP]
        r = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=out, stderr=err, preexec_fn=place, pass_fds=(9,), env=env)
        self.cells = r.stdin.fileno()
        return r

    def feed(self, text, quiet=False):
        data = text.encode("utf-8", "replace")
        write_all(self.cells, (b"q" if quiet else b"c") + b"%012d" % len(data) + data)

    def told(self, data):
        self.inbox += data
        while b"\n" in self.inbox:
            head, _, rest = self.inbox.partition(b"\n")
            kind, size = head.decode().split(" ")
            if len(rest) < int(size):
                break
            text, self.inbox = rest[: int(size)].decode("utf-8", "replace"), rest[int(size) :]
            if kind == "end":
                failure, self.failure = self.failure, {}
                self.hand_on_figures()
                return True, self.failed(failure) if failure else None
            if kind in ("main", "value"):
                self.drain()
                self.send("result", main=kind == "main", data={"text/plain": text})
            else:
                self.failure[kind] = text
        return False, None

    def failed(self, told):
        value = told.get("text", "")
        call = told.get("call")
        return dict(name=told.get("name", "error"), value=value, traceback="Error in %s : %s" % (call, value) if call else "Error: " + value)

    def hand_on_figures(self):
        for name in sorted(os.listdir(self.figures)):
            path = os.path.join(self.figures, name)
            with open(path, "rb") as figure:
                data = base64.b64encode(figure.read()).decode()
            os.unlink(path)
            self.send("result", main=False, data={"image/png": data})

    def begins(self, env, dir):
        os.environ.update(env)
        return sets(env) + (f"setwd({json.dumps(dir, ensure_ascii=False)})\n" if dir else "")

    def around(self, env):
        after = {n: os.environ[n] for n in env if n in os.environ}
        return sets(env), sets(after) + "".join(f"Sys.unsetenv({json.dumps(n)})\n" for n in env if n not in after)


def sets(env):
    return "".join(f"Sys.setenv({n} = {json.dumps(v, ensure_ascii=False)})\n" for n, v in env.items() if plain(n))


def main():
    if not shutil.which("R"):
        sys.stdout.write(json.dumps({"kind": "broken", "text": "the sandbox has no R: create it from the template code-interpreter, or install r-base-core"}) + "\n")
        return
    R().serve()
