package guest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/channel"
)

// The ways out of a process group, each writing the pid of what got away
// (C-LI-01, C-LI-02). $OUT is the file.
func escapes() map[string]string {
	stay := `echo $$ > $OUT.part; echo >> $OUT.part; mv $OUT.part $OUT; trap "" TERM INT HUP; while :; do sleep 0.05; done`
	return map[string]string{
		"itself, deaf":               stay,
		"child":                      `sh -c '` + stay + `' & wait`,
		"own session":                `setsid sh -c '` + stay + `' & wait`,
		"double fork, parent stays":  `(setsid sh -c '` + stay + `' &) & sleep 1000`,
		"double fork, no variables":  `(env -i OUT=$OUT PATH=$PATH setsid sh -c '` + stay + `' &) & sleep 1000`,
		"nohup, parent deaf":         `trap "" TERM; nohup sh -c '` + stay + `' >/dev/null 2>&1 & sleep 1000; sleep 1000`,
		"orphan in the same session": `(sh -c '` + stay + `' &); sleep 1000`,
	}
}

func TestTimeoutEndsTheWholeTree(t *testing.T) {
	for name, script := range escapes() {
		for _, others := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", another command runs"}[others], func(t *testing.T) {
				a := startAgent(t, nil)
				out := filepath.Join(t.TempDir(), "pid")
				var other *execution
				if others {
					other = a.start(channel.Exec{ID: "other", Argv: []string{"sh", "-c", "echo ready; cat"}, Stdin: true})
					other.until("ready")
				}
				e := a.start(channel.Exec{
					Argv: []string{"sh", "-c", script}, Env: map[string]string{"OUT": out},
					Timeout: 700, Grace: 100,
				})
				exit := e.wait()
				if !exit.TimedOut || exit.Code < 128 || exit.Error != "" {
					t.Errorf("got %+v %s", exit, e.stderr.String())
				}
				pid, err := strconv.Atoi(readWhenThere(t, out))
				if err != nil {
					t.Fatal(err)
				}
				if p, err := readProcess(pid); err == nil && !p.dead {
					t.Errorf("process %d outlived its command", pid)
				}
				if others {
					other.send(channel.FrameStdin, nil)
					if exit := other.wait(); exit.Code != 0 {
						t.Errorf("the other command was hit: %+v", exit)
					}
				}
			})
		}
	}
}

// The positive control of the test above: without a timeout each of them lives on.
func TestEscapesDoEscape(t *testing.T) {
	a := startAgent(t, nil)
	out := filepath.Join(t.TempDir(), "pid")
	e := a.start(channel.Exec{Argv: []string{"sh", "-c", escapes()["double fork, no variables"]}, Env: map[string]string{"OUT": out}})
	pid, err := strconv.Atoi(readWhenThere(t, out))
	if err != nil {
		t.Fatal(err)
	}
	e.sendJSON(channel.FrameSignal, channel.Signal{Name: "KILL"})
	e.wait()
	if p, err := readProcess(pid); err != nil || p.dead {
		t.Fatalf("what left the group was killed with it: %v", err)
	}
	e = a.start(channel.Exec{Argv: []string{"sleep", "1000"}})
	e.sendJSON(channel.FrameSignal, channel.Signal{Name: "TERM", Tree: true})
	e.wait()
	if p, err := readProcess(pid); err != nil || p.dead {
		t.Errorf("an older process was taken for a later command's: %v", err)
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
	gone(t, pid)
}

// Grace is given, and used.
func TestTimeoutAsksFirst(t *testing.T) {
	a := startAgent(t, nil)
	e := a.run(channel.Exec{
		Argv:    []string{"sh", "-c", "trap 'echo bye; exit 5' TERM; while :; do sleep 0.01; done"},
		Timeout: 200, Grace: 60_000,
	})
	if e.stdout.String() != "bye\n" || e.exit.Code != 5 || !e.exit.TimedOut {
		t.Errorf("%q %+v", e.stdout.String(), *e.exit)
	}
	e = a.run(channel.Exec{Argv: []string{"sh", "-c", "trap 'echo bye' TERM; while :; do sleep 0.01; done"}, Timeout: 200})
	if e.stdout.String() != "" || e.exit.Code != 137 || !e.exit.TimedOut {
		t.Errorf("without grace: %q %+v", e.stdout.String(), *e.exit)
	}
	e = a.run(channel.Exec{Argv: []string{"true"}, Timeout: 60_000})
	if e.exit.TimedOut {
		t.Errorf("in time: %+v", *e.exit)
	}
}

// A command that forks as fast as it can dies (C-RE-01, within its own tree).
func TestTimeoutEndsAFastForker(t *testing.T) {
	a := startAgent(t, nil)
	e := a.run(channel.Exec{
		Argv:    []string{"sh", "-c", `f() { sh -c : & }; while :; do f; f; f; wait; done`},
		Timeout: 300,
	})
	if e.exit.Code != 137 || !e.exit.TimedOut || e.exit.Error != "" {
		t.Errorf("%+v", *e.exit)
	}
	if n := (&tree{root: process{pid: e.started.PID}, id: "c1", self: os.Getpid()}).signal(0); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func TestMembers(t *testing.T) {
	// 1 agent; 10 the command; 20 another command
	table := map[int]process{
		1:  {pid: 1},
		10: {pid: 10, parent: 1, group: 10, session: 10, start: 100},
		11: {pid: 11, parent: 10, group: 11, session: 10, start: 101},
		12: {pid: 12, parent: 11, group: 12, session: 12, start: 102}, // left the session
		13: {pid: 13, parent: 1, group: 11, session: 10, start: 103},  // an orphan of the session
		14: {pid: 14, parent: 1, group: 14, session: 14, start: 50},   // older than the command
		15: {pid: 15, parent: 11, group: 10, session: 10, start: 104, dead: true},
		20: {pid: 20, parent: 1, group: 20, session: 20, start: 105},
		21: {pid: 21, parent: 20, group: 21, session: 21, start: 106},
		22: {pid: 22, parent: 1, group: 22, session: 20, start: 106}, // an orphan of the other's session
		30: {pid: 30, parent: 99, group: 30, session: 30, start: 107},
	}
	tr := &tree{root: table[10], id: "c", self: 1, other: map[int]string{20: "o"}}
	got := map[int]bool{}
	for _, pid := range tr.members(table) {
		got[pid] = true
	}
	for pid := range table {
		want := map[int]bool{10: true, 11: true, 12: true, 13: true}[pid]
		if got[pid] != want {
			t.Errorf("process %d: member %v, want %v", pid, got[pid], want)
		}
	}
	tr.root.start = 7 // the number belongs to somebody else now
	delete(table, 11)
	anew := map[int]process{1: table[1], 10: table[10], 16: {pid: 16, parent: 10, group: 10, session: 10, start: 108}}
	for _, pid := range tr.members(anew) {
		t.Errorf("process %d is not the command's", pid)
	}
	delete(anew, 10) // nobody has it: it is the session of the one that had it
	if got := tr.members(anew); len(got) != 1 || got[0] != 16 {
		t.Errorf("of the session of a command that has ended: %v", got)
	}
}

func TestParseStat(t *testing.T) {
	tail := " S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"
	for _, name := range []string{"sh", ") R 9 9 9", "a b) (c", "\n"} {
		p, err := parseStat(7, "7 ("+name+")"+tail)
		if err != nil || p != (process{pid: 7, parent: 1, group: 2, session: 3, start: 4242}) {
			t.Errorf("%q: %+v, %v", name, p, err)
		}
	}
	for _, line := range []string{"", "7 (sh", "7 (sh) S", "7 (sh) S" + strings.Repeat(" x", 30)} {
		if _, err := parseStat(7, line); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("7 (sh) S 1 2 3 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0")
	f.Fuzz(func(t *testing.T, line string) {
		if p, err := parseStat(7, line); err == nil && p.pid != 7 {
			t.Errorf("%+v", p)
		}
	})
}

// Dead children that nobody waits for are collected (C-LI-03).
func TestOrphansAreReaped(t *testing.T) {
	a := startAgent(t, nil)
	a.sh("i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done")
	for {
		zombies := 0
		table, err := processTable()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range table {
			if p.parent == os.Getpid() && p.dead {
				zombies++
			}
		}
		if zombies == 0 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("%d zombies are left", zombies)
		}
	}
}
