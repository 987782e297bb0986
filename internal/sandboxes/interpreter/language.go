package interpreter

import (
	_ "embed" // the kernels' programs
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

var (
	//go:embed programs/kernel.py
	pythonKernel string
	//go:embed programs/marks.py
	pythonMarks string
	//go:embed programs/charts.py
	pythonCharts string
	//go:embed programs/images.py
	pythonImages string
	//go:embed programs/front.py
	frontKernel string
	//go:embed programs/shell.py
	shellKernel string
	//go:embed programs/r.py
	rKernel string
	//go:embed programs/kernel.mjs
	nodeKernel string
)

// The languages that contexts have.
const (
	Python     = "python"
	JavaScript = "javascript"
	TypeScript = "typescript"
	Bash       = "bash"
	R          = "r"
)

// language is how a kernel is started.
type language struct {
	name    string
	aliases []string
	argv    []string          // without what marks a kernel
	env     map[string]string // of the kernel beyond the sandbox's
	program string            // what it gets on standard input first
}

// The program that reads a program from standard input, behind a line with its length in bytes, and runs
// it; requests follow.
const (
	bootPython = `import os
n = b""
while not n.endswith(b"\n"):
    n += os.read(0, 1)
t = b""
while len(t) < int(n):
    t += os.read(0, int(n) - len(t))
exec(compile(t, "<kernel>", "exec"))
`
	bootNode = `{const fs = require("fs"); let n = ""; const b = Buffer.alloc(1);
while (b[0] !== 10) { fs.readSync(0, b); n += b; }
const t = Buffer.alloc(+n); for (let a = 0; a < t.length;) a += fs.readSync(0, t, { offset: a });
import("data:text/javascript;base64," + t.toString("base64"));}`
	// The messages of node go to descriptor 3: what programs write that it starts is no message.
	nodeInShell = `exec 3>&1 1>&2; exec node --no-warnings -e "$0"`
)

func languages() []language {
	node := []string{"/bin/sh", "-c", nodeInShell, bootNode}
	python := []string{"python3", "-c", bootPython}
	return []language{
		{name: Python, aliases: []string{"py", "python3"}, argv: python, program: programs(pythonCharts, pythonImages, pythonKernel)},
		{name: JavaScript, aliases: []string{"js", "node"}, argv: node, program: nodeKernel},
		{name: TypeScript, aliases: []string{"ts"}, argv: node, env: map[string]string{"COFFERDAM_LANGUAGE": TypeScript}, program: nodeKernel},
		{name: Bash, aliases: []string{"sh", "shell"}, argv: python, program: programs(frontKernel, shellKernel)},
		{name: R, argv: python, program: programs(frontKernel, rKernel)},
	}
}

// programs is a kernel's program in Python, of its parts.
func programs(parts ...string) string {
	return pythonMarks + "\n" + strings.Join(parts, "\n") + "\nmain()\n"
}

// languageOf finds a language by one of its names; "" is Python.
func languageOf(name string) (language, error) {
	all := languages()
	if name == "" {
		return all[0], nil
	}
	wanted := strings.ToLower(name)
	i := slices.IndexFunc(all, func(l language) bool { return l.name == wanted || slices.Contains(l.aliases, wanted) })
	if i < 0 {
		var names []string
		for _, l := range all {
			names = append(names, l.name)
		}
		return language{}, fault.Invalid("there is no kernel for the language %q here; there are %s", text.Shorten(name, 40), strings.Join(names, ", "))
	}
	return all[i], nil
}
