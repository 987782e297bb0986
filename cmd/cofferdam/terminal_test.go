package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/client"
)

// person is somebody at a terminal, or a script with pipes, who has started
// `cofferdam run`.
type person struct {
	t   *testing.T
	cmd *exec.Cmd
	tty *os.File // nil: pipes
	dir string

	mu   sync.Mutex // guards seen
	more *sync.Cond
	seen bytes.Buffer // stdout, and at a terminal stderr too
	over bool
}

// at starts `cofferdam run ARGS` at a terminal of 30 rows and 100 columns.
func at(t *testing.T, args ...string) *person {
	t.Helper()
	p := newPerson(t, args)
	p.starts()
	return p
}

// starts starts the command at the terminal.
func (p *person) starts() {
	p.t.Helper()
	tty, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 30, Cols: 100})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = tty.Close() })
	p.tty = tty
	go p.read(tty)
}

// piped starts it without a terminal.
func piped(t *testing.T, args ...string) *person {
	t.Helper()
	p := newPerson(t, args)
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	go p.read(out)
	return p
}

func newPerson(t *testing.T, args []string) *person {
	t.Helper()
	dir, err := os.MkdirTemp("", "cofferdam-") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t: t, dir: dir, cmd: exec.CommandContext(t.Context(), "cofferdam", append([]string{"run"}, args...)...)}
	p.more = sync.NewCond(&p.mu)
	p.cmd.Env = append(os.Environ(), "TERM=vt220")
	socket := own(func(key, value string) { p.cmd.Env = append(p.cmd.Env, key+"="+value) }, dir)
	t.Cleanup(func() {
		_ = client.New(socket).Shutdown(context.Background(), true)
		_ = os.RemoveAll(dir)
	})
	return p
}

func (p *person) read(r *os.File) {
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.over = err != nil
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// sees waits until text is on the screen, count times.
func (p *person) sees(text string, count int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for strings.Count(p.seen.String(), text) < count {
		if p.over {
			p.t.Fatalf("the end came before %q was there %d times; on the screen:\n%q", text, count, p.seen.String())
		}
		p.more.Wait()
	}
}

func (p *person) types(keys string) {
	p.t.Helper()
	if _, err := p.tty.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) sends(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// leaves waits for the end, which must have the exit code, and after which no
// sandbox may be left.
func (p *person) leaves(code int) string {
	p.t.Helper()
	screen := p.ends(code)
	boxes, err := client.New(filepath.Join(p.dir, "run", "daemon.sock")).Sandboxes(p.t.Context())
	if err != nil || len(boxes) > 0 {
		p.t.Fatalf("left behind: %v (%v)", boxes, err)
	}
	return screen
}

// ends waits for the end, which must have the exit code.
func (p *person) ends(code int) string {
	p.t.Helper()
	err := p.cmd.Wait()
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		p.t.Fatal(err)
	}
	p.mu.Lock()
	for !p.over {
		p.more.Wait()
	}
	screen := p.seen.String()
	p.mu.Unlock()
	if got != code {
		p.t.Fatalf("exit code %d, want %d; on the screen:\n%q", got, code, screen)
	}
	return screen
}

func TestTerminalIsPassedThrough(t *testing.T) {
	t.Parallel()
	p := at(t, "--", "sh", "-c", `stty size; tty -s && echo is-a-tty; echo "term $TERM"; read -r line; echo "got $line"
		until [ "$(stty size)" = "41 77" ]; do sleep 0.01; done; exit 5`)
	p.sees("30 100\r\n", 1)
	p.sees("is-a-tty\r\n", 1)
	p.sees("term vt220\r\n", 1)
	p.types("hello\r")
	p.sees("got hello\r\n", 1)
	if err := pty.Setsize(p.tty, &pty.Winsize{Rows: 41, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	p.leaves(5)
}

func TestTerminalIsGivenBack(t *testing.T) {
	t.Parallel()
	p := at(t, "--", "sh", "-c", "echo ready; read -r line; exit 3")
	p.sees("ready", 1)
	raw := flagsOf(t, p.tty)
	p.types("\r")
	p.leaves(3)
	if after := flagsOf(t, p.tty); after == raw {
		t.Errorf("the terminal is still raw: %x", after)
	}
}

func TestCtrlCAtATerminalIsTheCommands(t *testing.T) {
	t.Parallel()
	p := at(t, "--", "cat")
	p.types("x\r")
	p.sees("x\r\n", 2) // the echo, and cat
	p.types("\x03")
	p.leaves(130)
}

// The commands that catch SIGINT do so in an empty loop: a shell that is just
// forking loses the signal.

func TestCtrlCTwiceLeavesAReactingCommandAlone(t *testing.T) {
	t.Parallel()
	p := at(t, "--", "sh", "-c", `trap 'echo caught' INT; echo ready; while :; do :; done`)
	p.sees("ready", 1)
	for n := range 3 {
		p.types("\x03")
		p.sees("caught", n+1)
	}
	p.types("\x1c") // Ctrl-\, to which it has no answer
	p.leaves(131)
}

func TestCtrlCTwiceEndsASilentCommand(t *testing.T) {
	t.Parallel()
	p := at(t, "--", "sh", "-c", `trap '' INT; echo ready; while :; do sleep 1000; done`)
	p.sees("ready", 1)
	p.types("\x03")
	p.sees("^C", 1) // the guest's terminal echoes the key: no reaction
	p.waitPast(interruptRepeat)
	p.types("\x03")
	screen := p.leaves(130)
	if !strings.Contains(screen, "cofferdam: the sandbox was ended by a second Ctrl-C\r\n") {
		t.Errorf("on the screen:\n%q", screen)
	}
}

func TestSignalsOfPipedRuns(t *testing.T) {
	t.Parallel()
	deaf := []string{"--", "sh", "-c", `trap 'echo caught' INT; trap '' TERM HUP; echo ready; while :; do :; done`}
	t.Run("a second SIGINT ends the sandbox", func(t *testing.T) {
		t.Parallel()
		p := piped(t, deaf...)
		p.sees("ready", 1)
		p.sends(syscall.SIGINT)
		p.sees("caught", 1)
		p.sends(syscall.SIGINT)
		if out := p.leaves(130); !strings.Contains(out, "ended by a second Ctrl-C") {
			t.Errorf("output: %q", out)
		}
	})
	for code, sig := range map[int]syscall.Signal{143: syscall.SIGTERM, 129: syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			p := piped(t, deaf...)
			p.sees("ready", 1)
			p.sends(sig)
			p.leaves(code)
		})
	}
	t.Run("SIGINT while the sandbox is made", func(t *testing.T) {
		t.Parallel()
		p := piped(t, "--isolation", "slow", "--", "true")
		p.asks("POST /v1/sandboxes")
		p.sends(syscall.SIGINT)
		p.leaves(130)
		p.asks("creation given up")
	})
}

// asks waits until the daemon has noted a line.
func (p *person) asks(line string) {
	p.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(filepath.Join(p.dir, "state", "requests")) // not there yet is not had yet
		if strings.Contains(string(text), line) {
			return
		}
		select {
		case <-tick.C:
		case <-p.t.Context().Done():
			p.t.Fatalf("the daemon never noted %q", line)
		}
	}
}

// waitPast lets more than d go by.
func (p *person) waitPast(d time.Duration) {
	p.t.Helper()
	<-time.After(d + 10*time.Millisecond)
}

// flagsOf are a terminal's local modes.
func flagsOf(t *testing.T, tty *os.File) uint32 {
	t.Helper()
	modes, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return modes.Lflag
}

// TestAMissingTemplateIsOffered: a person at a terminal is asked, and the run goes on with what was
// built; after a no, and where nobody can be asked, it is refused with the command that builds it.
func TestAMissingTemplateIsOffered(t *testing.T) {
	t.Parallel()
	const question = "the template unbuilt is not built yet; build it now (once, a minute or two)? [y/N] "
	const command = "run cofferdam template build unbuilt"
	built := `{"step":"unpack","percent":40}` + "\n" + `{"done":{"name":"unbuilt","digest":"sha256:aa","created":"2026-11-20T10:00:00Z","bytes":1}}` + "\n"
	asked := func(answer string) *person {
		p := newPerson(t, []string{"--template", unbuilt, "--", "echo", "it", "ran"})
		if err := os.MkdirAll(filepath.Join(p.dir, "state"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.puts("build.jsonl", built)
		p.starts()
		p.sees(question, 1)
		p.types(answer)
		return p
	}
	if screen := asked("y\r").ends(0); !strings.Contains(screen, "it ran") || strings.Contains(screen, "sha256:aa") {
		t.Errorf("after a yes:\n%s", screen)
	}
	if screen := asked("n\r").ends(2); !strings.Contains(screen, command) || strings.Contains(screen, "it ran") {
		t.Errorf("after a no:\n%s", screen)
	}
	if screen := asked("\x03").ends(130); strings.Contains(screen, "it ran") {
		t.Errorf("after Ctrl-C:\n%s", screen)
	}
	if screen := piped(t, "--template", unbuilt, "--", "echo", "it", "ran").ends(2); !strings.Contains(screen, command) || strings.Contains(screen, question) {
		t.Errorf("where nobody is asked:\n%s", screen)
	}
}

// TestAPersonIsToldWhoSpeaksMCP: somebody who starts the server by hand would wait for words of it, and get an error
// for the first line that is typed.
func TestAPersonIsToldWhoSpeaksMCP(t *testing.T) {
	t.Parallel()
	p := newPerson(t, nil)
	p.cmd.Args = []string{"cofferdam", "mcp"}
	p.starts()
	p.sees("cofferdam mcp install CLIENT", 1)
	p.types("help\n")
	p.sees("does not speak the Model Context Protocol", 1)
}
