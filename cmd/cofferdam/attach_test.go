package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"github.com/cofferdam-dev/cofferdam/api"
)

// heldCommand waits for a person as a client of a registry does: the hold is there
// when it has started, and goes when the test says so.
func heldCommand(then string) []string {
	return []string{
		"--run-id", "r1", "--env", "COFFERDAM_STATE", "--", "sh", "-c",
		`trap 'echo caught' INT HUP; echo begun
		until [ -e "$COFFERDAM_STATE/answered" ]; do sleep 0.01; done
		` + then,
	}
}

const oneHold = `[{"request":"ap-7kq2mx","package":"python rich 13.7.1","reason":"no list names it","since":"2026-11-21T10:00:00Z","frozen":false}]` + "\n"

func (p *person) puts(file, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, "state", file)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		p.t.Fatal(err)
	}
}

// back is the same person with another command at a terminal.
func (p *person) back(args ...string) *person {
	p.t.Helper()
	q := &person{t: p.t, dir: p.dir, cmd: exec.CommandContext(p.t.Context(), "cofferdam", args...)}
	q.more, q.cmd.Env = sync.NewCond(&q.mu), p.cmd.Env
	tty, err := pty.StartWithSize(q.cmd, &pty.Winsize{Rows: 20, Cols: 90})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = tty.Close() })
	q.tty = tty
	go q.read(tty)
	return q
}

func TestCtrlCLeavesARunThatWaits(t *testing.T) {
	t.Parallel()
	p := at(t, heldCommand("stty size; exit 4")...)
	p.sees("begun", 1)
	p.puts("holds.json", oneHold)
	p.sees("cofferdam: python rich 13.7.1 waits for approval (ap-7kq2mx): no list names it\r\n", 1)
	p.sees("cofferdam approvals approve ap-7kq2mx", 1)
	p.puts("holds.json", strings.Replace(oneHold, `"frozen":false`, `"frozen":true`, 1))
	p.sees("frozen on disk", 1)
	p.types("\x03")
	screen := p.ends(75)
	for _, want := range []string{"the run r1 was left waiting for ap-7kq2mx\r\n", "  go back to it:  cofferdam attach r1\r\n", "cofferdam kill sb-1"} {
		if !strings.Contains(screen, want) {
			t.Errorf("%q is not on the screen:\n%s", want, screen)
		}
	}

	q := p.back("attach", "r1")
	q.sees("begun", 1)
	q.sees("waits for approval", 1)
	p.puts("approval.json", `{"id":"ap-7kq2mx","state":"approved","answer":{"by":"alice"}}`)
	p.puts("holds.json", "[]\n")
	q.sees("ap-7kq2mx: python rich 13.7.1 was approved by alice; the run goes on\r\n", 1)
	p.puts("answered", "")
	q.sees("20 90\r\n", 1) // the second terminal's size
	if screen := q.leaves(4); strings.Contains(screen, "caught") {
		t.Errorf("the command got the Ctrl-C that left it:\n%s", screen)
	}
}

func TestAClosedTerminalLeavesARunThatWaits(t *testing.T) {
	t.Parallel()
	p := piped(t, heldCommand("exit 0")...)
	p.sees("begun", 1)
	p.puts("holds.json", oneHold)
	p.sees("waits for approval", 1)
	p.sends(syscall.SIGHUP)
	if out := p.ends(75); strings.Contains(out, "caught") {
		t.Errorf("the command got the signal:\n%s", out)
	}
}

func TestHoldsAreToldOnce(t *testing.T) {
	t.Parallel()
	var said []string
	teller := holdTeller{say: func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) }}
	hold := func(id, name string) api.Hold { return api.Hold{Request: id, Package: name, Reason: "why"} }
	update := func(want int, holds ...api.Hold) {
		t.Helper()
		said = nil
		teller.update(holds, func(h api.Hold) string { return h.Request + " answered" })
		if len(said) != want {
			t.Errorf("%d lines, want %d: %q", len(said), want, said)
		}
	}
	a, b := hold("ap-a", "python a 1"), hold("ap-b", "python b 1")
	update(0)
	update(2, a)
	update(0, a)
	update(2, a, b)
	a.Frozen, b.Frozen = true, true
	update(1, a, b)
	update(1, b)
	b.Frozen, b.Unfrozen = false, "there is no room"
	update(1, b)
	update(0, b)
	update(1)
	var many []api.Hold
	for _, id := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"} {
		many = append(many, hold("ap-"+id, "python p 1"))
	}
	update(holdsShown+2, many...)
	if !strings.Contains(said[holdsShown+1], "ap-1 ap-2") {
		t.Errorf("the command to approve is %q", said[holdsShown+1])
	}
}
