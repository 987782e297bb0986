package guest

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// sweepPause lies between two looks at the process table.
const sweepPause = 20 * time.Millisecond

// sweepLimit bounds the killing of a tree: what is not dead then hangs in the
// kernel.
const sweepLimit = 10 * time.Second

// gentleSweeps are tried before the whole sandbox is held still.
const gentleSweeps = 2

// tree tells which processes came of a command. Descent and session are facts.
// An orphan that left its session is known by its marker, which it could have
// forged: so an orphan younger than the command belongs to it unless it carries
// the marker of another command that runs now. What a process can win by
// forging is to outlive its own command's timeout while that other one runs.
type tree struct {
	root  process        // the command's first process, as it was when it started
	id    string         // the command's marker
	self  int            // the agent
	other map[int]string // first process -> marker of the other commands that run now
	clock *clock         // for wait and kill
}

// members lists the living processes of the tree.
func (t *tree) members(table map[int]process) []int {
	var pids []int
	verdicts := map[int]bool{t.self: false}
	for pid, p := range table {
		if t.has(table, verdicts, pid, 0) && !p.dead {
			pids = append(pids, pid)
		}
	}
	return pids
}

// has decides one process by its parents; verdicts keeps what was decided.
func (t *tree) has(table map[int]process, verdicts map[int]bool, pid, depth int) bool {
	if verdict, ok := verdicts[pid]; ok {
		return verdict
	}
	p, ok := table[pid]
	if !ok || depth > len(table) {
		return false // its parent ended between two reads: the next sweep sees it as an orphan
	}
	verdict := false
	switch {
	case t.other[pid] != "":
	case pid == t.root.pid:
		verdict = t.sameAs(p)
	case (p.session == t.root.pid || p.group == t.root.pid) && t.sameAs(table[t.root.pid]):
		verdict = true
	case p.parent == t.self:
		verdict = t.adopts(p)
	default:
		verdict = t.has(table, verdicts, p.parent, depth+1)
	}
	verdicts[pid] = verdict
	return verdict
}

// sameAs tells whether the root's number was not given to another process, p, whose
// session and group would then be no proof. Nobody has it: no process.
func (t *tree) sameAs(p process) bool {
	return p.pid == 0 || t.root.start == 0 || p.start == t.root.start
}

// adopts decides about an orphan.
func (t *tree) adopts(p process) bool {
	if p.start < t.root.start || t.other[p.session] != "" {
		return false
	}
	if len(t.other) == 0 {
		return true
	}
	id := marker(p.pid)
	if id == t.id {
		return true
	}
	for _, running := range t.other {
		if id == running {
			return false
		}
	}
	return true
}

// signal sends sig to every member and returns how many there were.
func (t *tree) signal(sig unix.Signal) int {
	table, err := processTable()
	if err != nil {
		_ = unix.Kill(-t.root.pid, sig) // without a process table the group is all that is known
		return 0
	}
	pids := t.members(table)
	for _, pid := range pids {
		_ = unix.Kill(pid, sig) // ESRCH: it ended by itself
	}
	return len(pids)
}

// kill ends the tree and returns how many processes were still there after
// sweepLimit. Each sweep stops the members before it kills them, so that a tree
// that forks as fast as it dies does not get away; where that is not enough,
// the whole sandbox stands still while they die.
func (t *tree) kill() int {
	deadline := t.clock.read() + sweepLimit
	for sweep := 0; ; sweep++ {
		if sweep >= gentleSweeps {
			holdStill(unix.SIGSTOP)
		} else {
			t.signal(unix.SIGSTOP)
		}
		left := t.signal(unix.SIGKILL)
		if sweep >= gentleSweeps {
			holdStill(unix.SIGCONT)
		}
		if left == 0 || t.clock.read() > deadline {
			return left
		}
		time.Sleep(sweepPause)
	}
}

// holdStill stops or continues everything but the agent, in one call that no
// fork can overtake. Only PID 1 knows that all it can signal is the sandbox's.
func holdStill(sig unix.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, sig) // ESRCH: nothing else is there
	}
}

// wait returns when no member lives any more, or after limit.
func (t *tree) wait(limit time.Duration) {
	deadline := t.clock.read() + limit
	for left := limit; left > 0; left = deadline - t.clock.read() {
		table, err := processTable()
		if err == nil && len(t.members(table)) == 0 {
			return
		}
		time.Sleep(min(sweepPause, left))
	}
}
