package interpreter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// stubs stand for what the Python kernel takes from ipykernel: a shell that runs a cell with
// exec. The kernel's own loop and messages are the real ones; the real shell's cells are tried in
// test/sdk.
var stubs = map[string]string{
	"traitlets.py":               "def Unicode(*_): pass\nObjectName = Unicode\n",
	"tornado/ioloop.py":          "class IOLoop:\n    current = staticmethod(lambda: None)\n",
	"IPython/core/formatters.py": "class BaseFormatter:\n    def __init__(self, **_): pass\n",
	"jupyter_client/session.py":  "class Session:\n    def __init__(self, **_): pass\n",
	"ipykernel/ipkernel.py": `
from types import SimpleNamespace as Space
class IPythonKernel:
    def __init__(self, session, **_):
        display = Space(formatters={}, active_types=[])
        self.session, self.names = session, {}
        self.shell = Space(displayhook=Space(), display_pub=Space(), history_manager=Space(), display_formatter=display, system=None, execution_count=1)
    async def do_execute(self, code, **_):
        self.shell.execution_count += 1 if code.strip() else 0
        try:
            exec(code, self.names)
            return {"status": "ok"}
        except Exception as broke:
            return {"status": "error", "ename": type(broke).__name__, "evalue": str(broke), "traceback": []}
`,
}

// stubPython has Python find the stubs first.
func stubPython(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range stubs {
		path := filepath.Join(dir, name)
		write(path, text)
		for parent := filepath.Dir(path); parent != dir; parent = filepath.Dir(parent) {
			write(filepath.Join(parent, "__init__.py"), "") // else a package that this machine has wins
		}
	}
	t.Setenv("PYTHONPATH", dir)
}

// tried are a language's cells: one that sets what a later one prints, a comment, and one that
// fails as it is read.
var tried = map[string]struct{ set, print, comment, broken string }{
	Python:     {"x = 5", "print(x)", "# ", "x = ="},
	JavaScript: {"x = 5", "console.log(x)", "// ", "x = ="},
	Bash:       {"x=5", "echo $x", "# ", "if"},
}

// TestRequestsLeaveNothingOut: what reads a request is no Go program, to which a text that is not
// there is an empty one.
func TestRequestsLeaveNothingOut(t *testing.T) {
	line, err := json.Marshal(request{})
	if err != nil {
		t.Fatal(err)
	}
	var told map[string]any
	if err := json.Unmarshal(line, &told); err != nil {
		t.Fatal(err)
	}
	for field := range reflect.TypeFor[request]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, there := told[name]; !there {
			t.Errorf("an empty request leaves %q out: %s", name, line)
		}
	}
}

// oddRequests are requests to run an empty cell, each with one field empty, missing or null, and
// cells with a text at its bound.
func oddRequests(t *testing.T, comment string) map[string]string {
	t.Helper()
	all := map[string]string{}
	write := func(name string, fields map[string]any) {
		line, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(line) + "\n"
	}
	whole := func() map[string]any {
		return map[string]any{"op": "run", "cell": "odd", "code": "", "env": map[string]string{}, "dir": ""}
	}
	write("all of them empty", whole())
	for field := range reflect.TypeFor[request]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "op" || name == "cell" {
			continue // without them it is no request
		}
		fields := whole()
		fields[name] = nil
		write(name+" is null", fields)
		delete(fields, name)
		write(name+" is missing", fields)
	}
	for name, set := range map[string]func(map[string]any){
		"blanks":                      func(f map[string]any) { f["code"] = "  \n\t\n" },
		"a comment":                   func(f map[string]any) { f["code"] = comment + "x" },
		"a cell at its bound":         func(f map[string]any) { f["code"] = comment + strings.Repeat("x", MaxCode-len(comment)) },
		"an empty variable":           func(f map[string]any) { f["env"] = map[string]string{"EMPTY": ""} },
		"a variable near its bound":   func(f map[string]any) { f["env"] = map[string]string{"LONG": strings.Repeat("x", 100<<10)} },
		"a directory that is no name": func(f map[string]any) { f["dir"] = strings.Repeat("/x", maxDir/2) },
	} {
		fields := whole()
		set(fields)
		write(name, fields)
	}
	return all
}

// TestOddCells: a cell in which there is nothing to do ends at once, without an error, and what the
// context has stays; for every language whose kernel can run here.
func TestOddCells(t *testing.T) {
	stubPython(t)
	for name, cells := range tried {
		t.Run(name, func(t *testing.T) {
			k := startProcess(t, name)
			k.ask(request{Op: "run", Cell: "set", Code: cells.set})
			if said, end := k.said(); end.Kind != "done" || said != "" {
				t.Fatalf("the first cell says %q and ends with %+v", said, end)
			}
			for what, line := range oddRequests(t, cells.comment) {
				k.write([]byte(line))
				if said, end := k.said(); end.Kind != "done" || end.Cell != "odd" || said != "" {
					t.Fatalf("%s: it says %q and ends with %+v", what, said, end)
				}
				k.ask(request{Op: "run", Cell: "print", Code: cells.print})
				if said, end := k.said(); end.Kind != "done" || said != "5\n" {
					t.Fatalf("after one with %s a cell says %q and ends with %+v", what, said, end)
				}
			}
			k.ask(request{Op: "run", Cell: "broken", Code: cells.broken})
			if _, end := k.said(); end.Kind != "error" {
				t.Errorf("a cell that is no program ends with %+v", end)
			}
			k.until("done")
		})
	}
}

// TestTracebacks: of what a kernel is made nothing stands in what a cell's failure tells.
func TestTracebacks(t *testing.T) {
	for _, language := range []string{JavaScript, TypeScript} {
		k := startProcess(t, language)
		for _, code := range []string{
			"const x: = 1", "x = =", "throw new Error('bad')", "import 'not-there'", "await import('./not-there.mjs')", "undefined.x",
			"require('not-there')", "({ get [Symbol.for('Jupyter.display')]() { throw new Error('shown') } })", "null?.x.y; JSON.parse('{')",
			"Promise.reject(new Error('late')); throw new Error('now ' + new Error('inner').stack)",
		} {
			k.ask(request{Op: "run", Cell: "c", Code: code})
			told := kernelMessage{}
			for m := k.next(); m.Kind != "done"; m = k.next() {
				told.Traceback += m.Traceback + m.Text
			}
			for line := range strings.Lines(told.Traceback) {
				if strings.Contains(line, "data:") || len(line) > 2000 {
					t.Errorf("%s: %q fails with a line of %d bytes: %.120s", language, code, len(line), line)
				}
			}
			if told.Traceback == "" {
				t.Errorf("%s: %q fails with nothing", language, code)
			}
		}
	}
}
