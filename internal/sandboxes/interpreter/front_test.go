package interpreter

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/personal"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	processes "github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// process is a kernel as a process of this machine.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	input io.WriteCloser
	out   *bufio.Reader
	clean func(line string) string // what becomes of its lines on their way; nil: nothing
}

func startProcess(t *testing.T, name string) *process {
	t.Helper()
	l, err := languageOf(name)
	if err != nil {
		t.Fatal(err)
	}
	k := &process{t: t, cmd: exec.CommandContext(t.Context(), l.argv[0], l.argv[1:]...)}
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if k.input, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.out = bufio.NewReader(out)
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-k.cmd.Process.Pid, syscall.SIGKILL)
		_ = k.cmd.Wait()
	})
	k.write(programOf(l))
	if m := k.next(); m.Kind != "ready" {
		t.Fatalf("the kernel begins with %+v", m)
	}
	return k
}

func (k *process) write(data []byte) {
	k.t.Helper()
	if _, err := k.input.Write(data); err != nil {
		k.t.Fatal(err)
	}
}

func (k *process) ask(r request) {
	k.t.Helper()
	line, err := json.Marshal(r)
	if err != nil {
		k.t.Fatal(err)
	}
	k.write(append(line, '\n'))
}

func (k *process) next() kernelMessage {
	k.t.Helper()
	line, err := k.out.ReadString('\n')
	if err != nil {
		k.t.Fatal(err)
	}
	if k.clean != nil {
		line = k.clean(line)
	}
	m, err := parseLine([]byte(line))
	if err != nil {
		k.t.Fatal(err)
	}
	return m
}

// until skips messages up to one of a kind.
func (k *process) until(kind string) kernelMessage {
	k.t.Helper()
	for {
		if m := k.next(); m.Kind == kind {
			return m
		}
	}
}

// said is all that a cell writes to its standard output, and the message that ends it.
func (k *process) said() (string, kernelMessage) {
	k.t.Helper()
	text := ""
	for {
		switch m := k.next(); m.Kind {
		case "stdout":
			text += m.Text
		case "done", "error":
			return text, m
		}
	}
}

// alive tells whether a process runs; one that has ended and is nobody's child does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// TestAShellEndsWithItsOwner: the bash of a kernel does not go on when what looks after it is
// gone, however that went, though its cell is a loop that waits for nothing. A shell that goes
// on ends with the namespace.
func TestAShellEndsWithItsOwner(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	for name, end := range map[string]func(*process){
		"killed":         func(k *process) { _ = k.cmd.Process.Kill() },
		"nobody to hear": func(k *process) { _ = k.input.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			k := startProcess(t, Bash)
			k.ask(request{Op: "run", Cell: "c1", Code: "echo $$; while :; do :; done"})
			pid, err := strconv.Atoi(strings.TrimSpace(k.until("stdout").Text))
			if err != nil {
				t.Fatal(err)
			}
			shell, err := processes.Of(pid)
			if err != nil || !alive(pid) {
				t.Fatal("the shell does not run, so that its end would prove nothing")
			}
			end(k)
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for alive(pid) && shell.Is() { // else until the test's own time is over
				<-look.C
			}
		})
	}
}

// TestAShellsCells: what a cell leaves, says and ends with, one line a message, and what is
// asked while a cell runs is not lost.
func TestAShellsCells(t *testing.T) {
	k := startProcess(t, Bash)
	k.ask(request{Op: "begin", Env: map[string]string{"FROM": "it's here"}, Dir: "/"})
	k.ask(request{Op: "run", Cell: "c1", Code: "X=1; printf 'a '; printf 'line\\n'; pwd; echo \"$FROM $ONCE\"", Env: map[string]string{"ONCE": "once"}})
	k.ask(request{Op: "interrupt"})
	k.ask(request{Op: "run", Cell: "c2", Code: "echo $X${ONCE-none}; false"})
	said, m := k.said() // in as many pieces as the shell and the reader make of it
	if said != "a line\n/\nit's here once\n" {
		t.Errorf("the first cell says %q", said)
	}
	if m.Kind != "done" || m.Cell != "c1" || m.Count != 1 {
		t.Errorf("the first cell's end: %+v", m)
	}
	if said, m = k.said(); said != "1none\n" {
		t.Errorf("the second cell says %q", said)
	}
	if m.Kind != "error" || m.Name != "ExitCode" || m.Value != "exit status 1" {
		t.Errorf("the second cell's failure: %+v", m)
	}
	if m := k.until("done"); m.Cell != "c2" || m.Count != 2 {
		t.Errorf("the second cell's end: %+v", m)
	}
	k.ask(request{Op: "run", Cell: "c3", Code: "exit 3"})
	if m := k.until("error"); m.Name != FailureDied {
		t.Errorf("a shell that has ended is told as %+v", m)
	}
}

// TestScanningOfMessages: what a policy scans for is found in a kernel's messages wherever it
// stands in the output, and a message from which it was taken is one still.
func TestScanningOfMessages(t *testing.T) {
	set := dlp.NewSet(append(personal.Rules(), secrets.Rules()...)...)
	k := startProcess(t, Bash)
	plain := "first\n4242424242424242\n\t536-22-8726\r\nada.lovelace@mail.host.org\n\x1bDE02120300000000202051\n\x7f\n\\n \"quoted\"\x01\x02\x1b\b\f\x1f\x7f\x7f\x10 é\u2028🚀\x1b"
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n", 3) + "-----END PRIVATE KEY-----\n"
	run := func(text string) string {
		k.ask(request{Op: "run", Cell: "c", Code: "printf %s " + "'" + text + "'"})
		said := ""
		for m := k.next(); m.Kind != "done"; m = k.next() {
			said += m.Text
		}
		return said
	}
	if said := run(plain + key); said != plain+key {
		t.Errorf("nothing is scanned, and what arrives is\n%q, not\n%q", said, plain+key)
	}
	k.clean = func(line string) string {
		masked, _ := set.Text(line, dlp.Plan{Personal: dlp.Redact, Secrets: dlp.Redact})
		return masked
	}
	stars := func(n int) string { return strings.Repeat("*", n) }
	want := "first\n" + stars(16) + "\n\t" + stars(11) + "\r\n" + stars(26) + "\n\x1b" + stars(22) + "\n\x7f\n\\n \"quoted\"\x01\x02\x1b\b\f\x1f\x7f\x7f\x10 é\u2028🚀\x1b"
	if said := run(plain); said != want {
		t.Errorf("what arrives is\n%q, not\n%q", said, want)
	}
	if said := run("a key:\n" + key); strings.Contains(said, "MIIE") || !strings.HasPrefix(said, "a key:\n***") {
		t.Errorf("of a key arrives %q", said)
	}
}

// TestTextsWithImports: an import is what a prompt can do, and what only looks like one, in a
// text that a cell writes, stays as it is.
func TestTextsWithImports(t *testing.T) {
	t.Parallel()
	k := startProcess(t, JavaScript)
	for code, want := range map[string]string{ // what the cell shows
		"import path, { join as j } from 'node:path'\nj('a', 'b') + path.sep":                            "a/b/",
		"`\nimport a from 'b'\n${\"import c from 'd'\"}`":                                                "\nimport a from 'b'\nimport c from 'd'",
		"// it's `\nimport * as os from 'node:os'\n`${typeof (await import('node:fs')).rm} import('x')`": "function import('x')",
		"const r = /[/`]import\\(/; r.test('`import(') && 4 / 2 / 1; // import('x')":                     "2",
		"/*\nimport a from 'b'\n*/ 'import(' + \"\\\nimport 'e'\"":                                       "import(import 'e'",
	} {
		k.ask(request{Op: "run", Cell: "c", Code: code})
		got, failed := "", ""
		for m := k.next(); m.Kind != "done"; m = k.next() {
			if shown, ok := m.Data["text/plain"]; ok {
				if err := json.Unmarshal(shown, &got); err != nil {
					t.Fatal(err)
				}
			}
			failed += m.Name + m.Value
		}
		if got != want || failed != "" {
			t.Errorf("%q shows %q, not %q: %s", code, got, want, failed)
		}
	}
}
