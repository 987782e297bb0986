package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// TestAKillEndsNobodyElsesServer: a command starts a server and ends. A kill of another command, which began
// before it and never started anything, ends that command and not the server. The control is that the
// server lives, and that of a kill without the tree.
func TestAKillEndsNobodyElsesServer(t *testing.T) {
	for name, whole := range map[string]bool{"control: its group": false, "the whole tree": true} {
		t.Run(name, func(t *testing.T) {
			a := startAgent(t, nil)
			out := filepath.Join(t.TempDir(), "pid")
			first := a.start(channel.Exec{ID: "first", Argv: []string{"sh", "-c", "echo ready; exec sleep 1000"}})
			first.until("ready")
			if e := a.run(channel.Exec{ID: "second", Argv: []string{"sh", "-c", "setsid sh -c 'echo $$ >$OUT.new; mv $OUT.new $OUT; exec sleep 1000' </dev/null >/dev/null 2>&1 &"}, Env: map[string]string{"OUT": out}}); e.exit.Code != 0 {
				t.Fatalf("%+v", e.exit)
			}
			pid, err := strconv.Atoi(readWhenThere(t, out))
			if err != nil {
				t.Fatal(err)
			}
			lives := func() bool {
				p, err := process.Read(pid)
				return err == nil && !p.Dead
			}
			if !lives() {
				t.Fatal("the server does not live, so that the rest proves nothing")
			}
			first.sendJSON(channel.FrameSignal, channel.Signal{Name: "KILL", Tree: whole})
			if exit := first.wait(); exit.Signal != "KILL" {
				t.Errorf("%+v", exit)
			}
			if !lives() {
				t.Errorf("the whole tree: %v: the kill of the first command has ended the server of the second", whole)
				return
			}
			if server, err := os.FindProcess(pid); err == nil {
				_ = server.Kill()
			}
			gone(t, pid)
		})
	}
}

// TestAForgedMarkerSavesNobody: what came of a command dies with its tree, though it claims to be of another
// command, which runs, or has ended. The control is that a server of that other one, which claims no less, lives.
func TestAForgedMarkerSavesNobody(t *testing.T) {
	for name, ended := range map[string]bool{"the other runs": false, "the other has ended": true} {
		t.Run(name, func(t *testing.T) {
			a := startAgent(t, nil)
			dir := t.TempDir()
			const server = `setsid env ` + markerVariable + `=other sh -c 'echo $$ >$OUT.new; mv $OUT.new $OUT; exec sleep 1000' </dev/null >/dev/null 2>&1 & `
			start := func(id, script string) (*execution, string) {
				out := filepath.Join(dir, id)
				return a.start(channel.Exec{ID: id, Argv: []string{"sh", "-c", script}, Env: map[string]string{"OUT": out}, Stdin: true}), out
			}
			victim, forged := start("victim", "echo ready; read line; ("+server+"); echo forged; exec sleep 1000")
			victim.until("ready")
			other, served := start("other", server+"echo ready; exec cat")
			other.until("ready")
			victim.send(channel.FrameStdin, []byte("\n"))
			victim.until("forged")
			lives := map[string]bool{forged: false, served: true}
			pids := map[string]int{}
			for out := range lives {
				pid, err := strconv.Atoi(readWhenThere(t, out))
				if err != nil {
					t.Fatal(err)
				}
				pids[out] = pid
			}
			if ended {
				other.send(channel.FrameStdin, nil)
				other.wait()
			}
			victim.sendJSON(channel.FrameSignal, channel.Signal{Name: "KILL", Tree: true})
			victim.wait()
			for out, want := range lives {
				p, err := process.Read(pids[out])
				if got := err == nil && !p.Dead; got != want {
					t.Errorf("what the %s started lives: %v", filepath.Base(out), got)
				}
				_ = p.Signal(unix.SIGKILL) // the one that is to be over is
				gone(t, pids[out])
			}
		})
	}
}

// TestLineages: a process that lowers a limit tells less of where it came from, and never of another command.
func TestLineages(t *testing.T) {
	const pair = "Limit                     Soft Limit           Hard Limit           Units     \nMax data size             7                    %v bytes     \nMax resident set          7                    %v bytes     \n"
	const number = 7
	for what, c := range map[string]struct {
		data, resident any
		may, not       []uint64
		certain        bool
	}{
		"as it was started":        {falling - number, growing + number, []uint64{number}, []uint64{number - 1, number + 1}, true},
		"less data":                {1000, growing + number, []uint64{number, number + 1}, []uint64{number - 1}, false},
		"less in memory":           {falling - number, 1000, []uint64{number, number - 1}, []uint64{number + 1}, false},
		"as if of the next":        {falling - number - 1, growing + number, []uint64{number, number + 1}, []uint64{number - 1, number + 2}, false},
		"as if of the one before":  {falling - number, growing + number - 1, []uint64{number, number - 1}, []uint64{number + 1}, false},
		"of an agent without them": {"unlimited", "unlimited", []uint64{1, number}, nil, false},
		"higher than any agent's":  {falling, growing + numberLimit + 1, []uint64{1, number}, nil, false},
		"of no command":            {falling - number, growing + number + 1, []uint64{1, number, number + 1, number + 2}, nil, false},
	} {
		l := parseLineage(fmt.Appendf(nil, pair, c.data, c.resident))
		if l.certain() != c.certain || !l.allows(0) {
			t.Errorf("%s: %+v", what, l)
		}
		for _, n := range c.may {
			if !l.allows(n) {
				t.Errorf("%s: not of %d", what, n)
			}
		}
		for _, n := range c.not {
			if l.allows(n) {
				t.Errorf("%s: of %d", what, n)
			}
		}
	}
	if l := lineageOf(1 << 30); l != unknown() {
		t.Errorf("nobody: %+v", l)
	}
}
