package guest

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// The ways out of a process group, each writing the pid of what got away
// (C-LI-01, C-LI-02). $OUT is the file.
func escapes() map[string]string {
	stay := `trap "" TERM INT HUP; echo $$ > $OUT.part; echo >> $OUT.part; mv $OUT.part $OUT; while :; do sleep 0.05; done`
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

// awaitEscape returns the process that got away, once it is deaf and, where its way out is to become an orphan, is one.
func awaitEscape(t *testing.T, way, out string) int {
	t.Helper()
	pid, err := strconv.Atoi(readWhenThere(t, out))
	if err != nil {
		t.Fatal(err)
	}
	orphan := strings.HasPrefix(way, "double fork") || strings.HasPrefix(way, "orphan")
	for orphan {
		p, err := process.Read(pid)
		if err != nil || t.Context().Err() != nil {
			t.Fatalf("the process %d is nobody's orphan: %+v, %v", pid, p, err)
		}
		if p.Parent == os.Getpid() {
			break
		}
		runtime.Gosched()
	}
	return pid
}

// TestTimeoutEndsTheWholeTree once all of it is there: until then the timeouts' clock stands.
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
				a.mustCall(channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{Stopped: true}})
				e := a.start(channel.Exec{
					Argv: []string{"sh", "-c", script}, Env: map[string]string{"OUT": out},
					Timeout: 1, Grace: 100,
				})
				pid := awaitEscape(t, name, out)
				a.mustCall(channel.Call{Kind: channel.CallHold, Hold: &channel.Hold{}})
				exit := e.wait()
				if !exit.TimedOut || exit.Code < 128 || exit.Error != "" || strings.HasSuffix(name, "deaf") && exit.Code != 137 {
					t.Errorf("got %+v %s", exit, e.stderr.String())
				}
				if p, err := process.Read(pid); err == nil && !p.Dead {
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
	if p, err := process.Read(pid); err != nil || p.Dead {
		t.Fatalf("what left the group was killed with it: %v", err)
	}
	e = a.start(channel.Exec{Argv: []string{"sleep", "1000"}})
	e.sendJSON(channel.FrameSignal, channel.Signal{Name: "TERM", Tree: true})
	e.wait()
	if p, err := process.Read(pid); err != nil || p.Dead {
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
	alone := &processTree{root: process.ID{Pid: e.started.PID}, id: "c1", self: os.Getpid(), reaper: newReaper()}
	alone.others = func() neighbours { return nil }
	if n := alone.signalMembers(0); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}

func at(pid, parent, group, session int, start uint64) process.Stat {
	return process.Stat{ID: process.ID{Pid: pid, Start: start}, Parent: parent, Group: group, Session: session}
}

func TestMembers(t *testing.T) {
	// 1 agent; 10 the command; 20 another command
	table := map[int]process.Stat{
		1:  at(1, 0, 0, 0, 0),
		10: at(10, 1, 10, 10, 100),
		11: at(11, 10, 11, 10, 101),
		12: at(12, 11, 12, 12, 102), // left the session
		13: at(13, 1, 11, 10, 103),  // an orphan of the session
		14: at(14, 1, 14, 14, 50),   // older than the command
		15: at(15, 11, 10, 10, 104),
		20: at(20, 1, 20, 20, 105),
		21: at(21, 20, 21, 21, 106),
		22: at(22, 1, 22, 20, 106), // an orphan of the other's session
		30: at(30, 99, 30, 30, 107),
		40: at(40, 12, 40, 40, 108), // has the number of a command that ended
		50: at(50, 1, 50, 50, 109),  // started by the agent for nobody's command
	}
	dead := table[15]
	dead.Dead = true
	table[15] = dead
	tr := &processTree{root: table[10].ID, id: "c", self: 1, other: neighbours{
		table[20].ID: {id: "o"}, {Pid: 40, Start: 30}: {id: "p"}, table[50].ID: {},
	}}
	got := map[int]bool{}
	for _, id := range tr.members(table) {
		got[id.Pid] = true
	}
	for pid := range table {
		want := map[int]bool{10: true, 11: true, 12: true, 13: true, 40: true}[pid]
		if got[pid] != want {
			t.Errorf("process %d: member %v, want %v", pid, got[pid], want)
		}
	}
	tr.root.Start = 7 // the number belongs to somebody else now
	delete(table, 11)
	anew := map[int]process.Stat{1: table[1], 10: table[10], 16: at(16, 10, 10, 10, 108)}
	for _, id := range tr.members(anew) {
		t.Errorf("process %v is not the command's", id)
	}
	delete(anew, 10) // nobody has it: it is the session of the one that had it
	if got := tr.members(anew); len(got) != 1 || got[0].Pid != 16 {
		t.Errorf("of the session of a command that has ended: %v", got)
	}
}

// TestACommandThatStartsIsNobodysOrphan: whatever happens to another command's
// tree while a command starts, it is not taken for a process of that tree.
func TestACommandThatStartsIsNobodysOrphan(t *testing.T) {
	a := startAgent(t, nil)
	deaf := a.start(channel.Exec{ID: "deaf", Argv: []string{"sh", "-c", `trap "" TERM; echo ready; cat >/dev/null`}, Stdin: true})
	deaf.until("ready")
	tree := a.agent.commands.findCommand("deaf").treeOf()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				tree.signalMembers(unix.SIGTERM) // as old a tree as one that is being killed
			}
		}
	}()
	for i := range 60 {
		e := a.run(channel.Exec{ID: strconv.Itoa(i), Argv: []string{"sh", "-c", "echo alive"}})
		if e.exit.Code != 0 || e.stdout.String() != "alive\n" {
			t.Errorf("the command %d: %q, %+v", i, e.stdout.String(), *e.exit)
		}
	}
	close(stop)
	<-stopped
	deaf.send(channel.FrameStdin, nil)
	deaf.wait()
}

// Dead children that nobody waits for are collected (C-LI-03).
func TestOrphansAreReaped(t *testing.T) {
	a := startAgent(t, nil)
	a.sh("i=0; while [ $i -lt 200 ]; do (true &); i=$((i+1)); done")
	for {
		zombies := 0
		table, err := process.Table()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range table {
			if p.Parent == os.Getpid() && p.Dead {
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

// TestAStopperHoldsUpNoAgent: a command that stops whatever is its user's, also
// what has been forked for the next command and does not run yet, ends at its
// timeout, and so do the others.
func TestAStopperHoldsUpNoAgent(t *testing.T) {
	s := configured(t, nil, nil, oneProcessor)
	const stop = "echo ready; while :; do kill -STOP -1; done"
	// One that nothing ends: the others begin all the same.
	stopper := s.start(channel.Exec{ID: "for ever", Argv: []string{"sh", "-c", stop}})
	stopper.until("ready")
	for i := range 4 {
		if exit := s.start(channel.Exec{ID: strconv.Itoa(i), Argv: []string{"true"}, Timeout: 100}).wait(); exit.Code != 0 && !exit.TimedOut {
			t.Errorf("%+v", exit)
		}
	}
	stopper.sendJSON(channel.FrameSignal, channel.Signal{Name: "KILL"})
	if exit := stopper.wait(); exit.Code != 137 {
		t.Errorf("%+v", exit)
	}

	stopper = s.start(channel.Exec{ID: "stopper", Argv: []string{"sh", "-c", stop}, Timeout: 800})
	stopper.until("ready")
	var others []*execution
	for i := range 8 {
		others = append(others, s.start(channel.Exec{ID: strconv.Itoa(i), Argv: []string{"true"}, Timeout: 800}))
	}
	if exit := stopper.wait(); !exit.TimedOut || exit.Code != 137 {
		t.Errorf("%+v", exit)
	}
	for _, e := range others {
		if exit := e.wait(); exit.Code != 0 && !exit.TimedOut {
			t.Errorf("%+v", exit)
		}
	}
}

// oneProcessor is the environment of an agent that runs one goroutine at a time, as in a
// sandbox that has a single processor.
const oneProcessor = "GOMAXPROCS=1"

// TestAStartThatIsHeldUpHoldsUpNoOther: the owner of a program can have the kernel keep the
// program's start waiting for him. The agent goes on meanwhile.
func TestAStartThatIsHeldUpHoldsUpNoOther(t *testing.T) {
	s := configured(t, nil, nil, oneProcessor)
	const hold = `cp /bin/true /media/own && exec perl -e '
		$| = 1; $SIG{IO} = sub { print "waited for\n" }; $SIG{USR1} = sub { exit };
		open my $f, "<", "/media/own" or die $!; fcntl($f, 1024, 1) or die "F_SETLEASE: $!"; print "ready\n"; sleep 1 while 1'`
	owner := s.start(channel.Exec{ID: "owner", Argv: []string{"sh", "-c", hold}})
	owner.until("ready")
	held := s.start(channel.Exec{ID: "held", Argv: []string{"/media/own"}})
	owner.until("waited for")
	another := s.run(channel.Exec{ID: "another", Argv: []string{"grep", "BREAKING", "/proc/locks"}})
	if another.exit.Code != 0 {
		t.Errorf("when another has begun nothing is held up any more: %+v", another.exit)
	}
	owner.sendJSON(channel.FrameSignal, channel.Signal{Name: "USR1"})
	if exit := held.wait(); exit.Code != 0 {
		t.Errorf("once it is let go: %+v", exit)
	}
	if exit := owner.wait(); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
}

// TestWhatWasAMemberStaysOne: a sweep kills the command's first process before the
// others, and what was below it is killed with it, whatever it says of itself.
func TestWhatWasAMemberStaysOne(t *testing.T) {
	root, child, other := process.ID{Pid: 12, Start: 100}, process.ID{Pid: 14, Start: 110}, process.ID{Pid: 20, Start: 90}
	tr := &processTree{root: root, id: "a", self: 1, other: neighbours{other: {id: "b"}}}
	below := func(parent int) map[int]process.Stat {
		return map[int]process.Stat{
			1:  {ID: process.ID{Pid: 1, Start: 1}, Group: 1, Session: 1},
			12: {ID: root, Parent: 1, Group: 12, Session: 12, Dead: parent == 1},
			14: {ID: child, Parent: parent, Group: 14, Session: other.Pid},
			20: {ID: other, Parent: 1, Group: 20, Session: 20},
		}
	}
	before := tr.members(below(12))
	if len(before) != 2 {
		t.Fatalf("members %v, not the first process and its child", before)
	}
	if got := tr.members(below(1)); len(got) != 0 {
		t.Fatalf("%v: an orphan in another command's session is told apart, so that nothing is proved", got)
	}
	tr.known = before
	if got := tr.members(below(1)); len(got) != 1 || got[0] != child {
		t.Errorf("members %v after the first process was killed, not its child", got)
	}
	again := below(1)
	again[14] = process.Stat{ID: process.ID{Pid: 14, Start: 500}, Parent: 1, Group: 14, Session: other.Pid}
	if got := tr.members(again); len(got) != 0 {
		t.Errorf("members %v: another process has the number now", got)
	}
}
