package guest

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// sweepPause lies between two looks at the process table.
const sweepPause = 20 * time.Millisecond

// sweepLimit bounds the killing of a tree: what is not dead then hangs in the
// kernel.
const sweepLimit = 10 * time.Second

// gentleSweeps are tried before the whole sandbox is held still.
const gentleSweeps = 2

// processTree tells which processes came of a command. Descent and session are facts,
// and so is the lineage of an orphan that left its session, also when its own
// command has ended. Where a process has lowered the limits that tell it, an orphan
// younger than the command belongs to it if the limits leave that possible, unless
// it carries the marker of another command that runs now, which it could have
// forged: it outlives its own command's timeout by that while the other one runs,
// and the other one must be one that its limits leave possible.
type processTree struct {
	root   process.ID // the command's first process
	id     string     // the command's marker
	number uint64     // the command's number; 0: none is known
	self   int        // the agent
	reaper *reaper    // starts and collects the agent's children
	clock  *clock     // for wait and kill
	// killing is told before the first process, which lives, is killed; nil: nobody is.
	killing func()
	// others tells what else the agent has started: it is asked anew at each look,
	// because commands start while a tree is being killed. Called under reaper.mu.
	others func() neighbours
	other  neighbours   // as of the last look
	known  []process.ID // were members when a sweep began, and are while they live
}

// neighbours are first processes that are not the tree's, with their commands.
type neighbours map[process.ID]neighbour

// neighbour is a command by its marker and number; "" and 0 for what is no command.
type neighbour struct {
	id     string
	number uint64
}

// leadsSession tells whether one of them leads the session.
func (n neighbours) leadsSession(session int) bool {
	for id := range n {
		if id.Pid == session {
			return true
		}
	}
	return false
}

// findMembers finds the living members. Needs reaper.mu: under it no child of the agent
// is between its fork and its being known, which would make it an orphan.
func (t *processTree) findMembers() ([]process.ID, error) {
	t.other = t.others()
	table, err := process.Table()
	if err != nil {
		return nil, err
	}
	return t.members(table), nil
}

// members lists the living processes of the tree.
func (t *processTree) members(table map[int]process.Stat) []process.ID {
	var found []process.ID
	verdicts := map[int]bool{t.self: false}
	for _, id := range t.known {
		if table[id.Pid].ID == id {
			verdicts[id.Pid] = true
		}
	}
	for pid, p := range table {
		if t.hasMember(table, verdicts, pid, 0) && !p.Dead {
			found = append(found, p.ID)
		}
	}
	return found
}

// hasMember decides one process by its parents; verdicts keeps what was decided.
func (t *processTree) hasMember(table map[int]process.Stat, verdicts map[int]bool, pid, depth int) bool {
	if verdict, ok := verdicts[pid]; ok {
		return verdict
	}
	p, ok := table[pid]
	if !ok || depth > len(table) {
		return false // its parent ended between two reads: the next sweep sees it as an orphan
	}
	verdict := false
	_, theirs := t.other[p.ID]
	switch {
	case theirs:
	case pid == t.root.Pid:
		verdict = p.ID == t.root
	case (p.Session == t.root.Pid || p.Group == t.root.Pid) && t.unclaimed(table[t.root.Pid].ID):
		verdict = true
	case p.Parent == t.self:
		verdict = t.adopts(p)
	default:
		verdict = t.hasMember(table, verdicts, p.Parent, depth+1)
	}
	verdicts[pid] = verdict
	return verdict
}

// unclaimed tells whether the root's number was not given to another process, now,
// whose session and group would then be no proof. Nobody has it: no process.
func (t *processTree) unclaimed(now process.ID) bool { return now.Pid == 0 || now == t.root }

// adopts decides about an orphan.
func (t *processTree) adopts(p process.Stat) bool {
	if p.Start < t.root.Start || t.other.leadsSession(p.Session) {
		return false
	}
	came := lineageOf(p.Pid)
	if !came.allows(t.number) {
		return false
	}
	if t.number != 0 && came.certain() || len(t.other) == 0 {
		return true
	}
	id := marker(p.Pid)
	if id == t.id {
		return true
	}
	for _, running := range t.other {
		if running.id != "" && running.id == id && came.allows(running.number) {
			return false
		}
	}
	return true
}

// signalMembers sends sig to every member and returns how many there were.
func (t *processTree) signalMembers(sig unix.Signal) int {
	t.reaper.mu.Lock()
	defer t.reaper.mu.Unlock()
	return t.signalHeld(sig)
}

// signalHeld sends a signal; the caller holds reaper.mu.
func (t *processTree) signalHeld(sig unix.Signal) int {
	members, err := t.findMembers()
	if err != nil {
		t.reaper.signalHeld(t.root, sig) // without a process table the group is all that is known
		return 0
	}
	for _, id := range members {
		_ = id.Signal(sig) // it may have ended by itself
	}
	return len(members)
}

// killMembers ends the tree and returns how many processes were still there after
// sweepLimit. Each sweep stops the members before it kills them, so that a tree
// that forks as fast as it dies does not get away; where that is not enough,
// the whole sandbox stands still while they die.
func (t *processTree) killMembers() int {
	deadline := t.clock.readTime() + sweepLimit
	for sweep := 0; ; sweep++ {
		left := t.sweepMembers(sweep >= gentleSweeps)
		if left == 0 || t.clock.readTime() > deadline {
			return left
		}
		time.Sleep(sweepPause)
	}
}

// sweepMembers kills what is there now, the command's own process before any is stopped:
// the end of a member has gVisor send SIGHUP to a process group of which some are
// stopped, and a command that is killed is told as killed. The lock is held from the stop to
// the end of it: nobody else stops or continues anything meanwhile.
func (t *processTree) sweepMembers(all bool) int {
	t.reaper.mu.Lock()
	defer t.reaper.mu.Unlock()
	t.killRoot()
	if all {
		holdStill(unix.SIGSTOP)
		defer holdStill(unix.SIGCONT)
	} else {
		t.signalHeld(unix.SIGSTOP)
	}
	return t.signalHeld(unix.SIGKILL)
}

// killRoot kills the command's own process, and remembers the members: those that
// become orphans by that are not judged anew. Needs reaper.mu.
func (t *processTree) killRoot() {
	members, err := t.findMembers()
	if err != nil {
		return
	}
	t.known = members
	if slices.Contains(members, t.root) {
		if t.killing != nil {
			t.killing()
		}
		_ = t.root.Signal(unix.SIGKILL) // it may have ended by itself
	}
}

// holdStill stops or continues everything but the agent, in one call that no
// fork can overtake. Only PID 1 knows that all it can signal is the sandbox's.
func holdStill(sig unix.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, sig) // ESRCH: nothing else is there
	}
}

// waitGone returns when no member lives any more, or after limit.
func (t *processTree) waitGone(limit time.Duration) {
	deadline := t.clock.readTime() + limit
	for left := limit; left > 0; left = deadline - t.clock.readTime() {
		if t.isOver() {
			return
		}
		time.Sleep(min(sweepPause, left))
	}
}

func (t *processTree) isOver() bool {
	t.reaper.mu.Lock()
	defer t.reaper.mu.Unlock()
	members, err := t.findMembers()
	return err == nil && len(members) == 0
}

// marker is the command id in a process's environment, as far as the process
// has not overwritten it; "" if there is none.
func marker(pid int) string {
	file, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer file.Close()
	buf := make([]byte, 256<<10)
	n, _ := file.Read(buf)
	for variable := range bytes.SplitSeq(buf[:n], []byte{0}) {
		if id, ok := strings.CutPrefix(string(variable), markerVariable+"="); ok {
			return id
		}
	}
	return ""
}
