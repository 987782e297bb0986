# The kernel of a context for bash: see front.py.

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


class Shell(Front):
    name = "the shell"

    def start(self, out, err, status):
        cells, self.cells = os.pipe()
        self.statuses = b""

        def place():  # 8 and 9 of the bash
            self.tie()
            high = [os.dup2(cells, 100), os.dup2(status, 101)]
            os.dup2(high[0], 8)
            os.dup2(high[1], 9)

        argv = ["/bin/bash", "--norc", "--noprofile", "-c", LOOP]
        bash = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=place, pass_fds=(8, 9))
        os.close(cells)
        return bash

    def feed(self, text, quiet=False):
        write_all(self.cells, text.replace("\0", "").encode("utf-8", "surrogateescape") + b"\0")

    def told(self, data):
        self.statuses += data
        if not self.statuses.endswith(b"\0"):
            return False, None
        code = int(self.statuses[:-1].rsplit(b"\0", 1)[-1] or b"0")
        self.statuses = b""
        if code == 0 and not self.struck:
            return True, None
        return True, dict(name="ExitCode", value="exit status %d" % code, traceback="")

    def begins(self, env, dir):
        text = "".join(f"export {n}={quoted(v)}\n" for n, v in env.items() if plain(n))
        return text + (f"cd {quoted(dir)} 2>/dev/null\n" if dir else "")

    def around(self, env):
        before = "".join(f"__cofferdam_had_{i}=${{{n}+x}}; __cofferdam_was_{i}=${{{n}-}}; export {n}={quoted(v)}\n" for i, (n, v) in enumerate(env.items()))
        after = "".join(
            f"if [ -n \"$__cofferdam_had_{i}\" ]; then {n}=$__cofferdam_was_{i}; else unset {n}; fi; unset __cofferdam_had_{i} __cofferdam_was_{i}\n"
            for i, n in enumerate(env)
        )
        return before, after


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def main():
    Shell().serve()
