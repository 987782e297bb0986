package keeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process/processtest"
)

// The number to which the counter of process numbers is wound back: above all that a test's
// own processes have.
const backTo = 2000

// TestNumbersThatComeAgain: a process that has the number of one that ended long
// ago is not taken for it, and its sandbox lives.
func TestNumbersThatComeAgain(t *testing.T) {
	if processtest.Inside(t) {
		numbersComeAgain(t, 12)
	}
}

// numbersComeAgain launches sandboxes, each with the numbers of those before it.
func numbersComeAgain(t *testing.T, times int) {
	t.Helper()
	s := newStage(t)
	seen := map[int]bool{}
	again := 0
	for i := 0; i < times || again == 0 && i < 5*times; i++ {
		s.must(processtest.SetLast(backTo))
		id := fmt.Sprintf("box%d", i)
		pids := s.starter(id)
		for _, pid := range pids {
			if seen[pid] {
				again++
			}
			seen[pid] = true
		}
		s.must(s.Track(t.Context(), id, identified(pids)))
		box := s.get(id)
		if !box.Alive || len(box.Pids) != 2 || box.Exit != nil {
			t.Fatalf("the sandbox %d of %d, with the processes %v: %+v", i+1, times, pids, box)
		}
		s.run(id, "c", ExecOptions{}, "echo", "hello")
		if o := s.result(id, "c"); o.out.String() != "hello" {
			t.Errorf("%q", &o.out)
		}
		s.must(s.Kill(t.Context(), id))
		for _, pid := range pids {
			if !gone(pid) {
				t.Errorf("process %d is still there", pid)
			}
		}
		s.must(s.Forget(t.Context(), id))
	}
	if again == 0 {
		t.Errorf("no number came again in %d launches, so that nothing is proved", times)
	}
}

// TestTrackTakesNoOnesProcess: a number that is not of a process which this
// sandbox's launch left behind is refused, and nobody is signalled.
func TestTrackTakesNoOnesProcess(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	s := newStage(t)
	bystander := exec.CommandContext(t.Context(), "/proc/self/exe")
	bystander.Env = []string{roleVar + "=sleeper"}
	s.must(bystander.Start())
	older := s.starter("older")
	s.must(s.Track(t.Context(), "older", identified(older)))
	s.starter("box")
	for _, tt := range []struct {
		pid  int
		want error
	}{
		{-1, fault.ErrInvalid},
		{0, fault.ErrInvalid},
		{1, fault.ErrInvalid},
		{-bystander.Process.Pid, fault.ErrInvalid},
		{bystander.Process.Pid, fault.ErrConflict},
		{s.keeper.Process.Pid, fault.ErrConflict},
		{older[0], fault.ErrConflict}, // another sandbox's
		{1 << 30, fault.ErrConflict},
	} {
		if err := s.trackNumbers("box", tt.pid); !errors.Is(err, tt.want) {
			t.Errorf("track of %d: %v", tt.pid, err)
		}
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
	if box := s.get("older"); len(box.Pids) != 2 {
		t.Errorf("the other sandbox: %+v", box)
	}
	if p, err := process.Read(bystander.Process.Pid); err != nil || p.Dead {
		t.Errorf("the bystander: %+v, %v", p, err)
	}
	s.must(bystander.Process.Kill())
	_ = bystander.Wait()
}

// TestReaperSignalsOneProcess: whatever has come to be registered, no number
// that means many is signalled.
func TestReaperSignalsOneProcess(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	bystander := exec.CommandContext(t.Context(), "/proc/self/exe")
	bystander.Env = []string{roleVar + "=sleeper"}
	bystander.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	r := newReaper()
	for _, pid := range []int{-1, 0, 1, -bystander.Process.Pid} {
		for _, group := range []bool{false, true} {
			p := &child{id: process.ID{Pid: pid}, done: make(chan struct{})}
			if err := r.signalChild(p, syscall.SIGKILL, group); !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("a signal to %d, as a group %t: %v", pid, group, err)
			}
		}
	}
	if p, err := process.Read(bystander.Process.Pid); err != nil || p.Dead {
		t.Errorf("the bystander: %+v, %v", p, err)
	}
	if err := bystander.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = bystander.Wait()
}

// TestAReapedNumberIsOfItsTime: what ended before a launch began, or under
// another sandbox, is not what the launch left behind.
func TestAReapedNumberIsOfItsTime(t *testing.T) {
	r := newReaper()
	const nobodys = 1 << 30 // beyond the largest number there can be
	r.dispatch(nobodys, 7<<8)
	born := birth{reaped: r.reaped}
	if _, err := r.adoptChild("late", born, process.ID{Pid: nobodys}, true); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "not a child") {
		t.Errorf("of before: %v", err)
	}
	r.dispatch(nobodys, 9<<8)
	if p, err := r.adoptChild("late", born, process.ID{Pid: nobodys}, true); err != nil || p.isAlive() || p.exit.Code != 9 {
		t.Errorf("of its own time: %+v, %v", p, err)
	}
	own, err := process.Self()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.adoptChild("late", born, own, true); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("this process, which is nobody's child here: %v", err)
	}
	for range 2 * maxEnded {
		r.dispatch(os.Getpid(), 0)
	}
	if len(r.ended) != maxEnded {
		t.Errorf("%d ends are remembered", len(r.ended))
	}
}

// identified are the processes that have numbers now; those that nobody has are over.
func identified(pids []int) []process.ID {
	var found []process.ID
	for _, pid := range pids {
		id, err := process.Of(pid)
		if err != nil {
			id = process.ID{Pid: pid}
		}
		found = append(found, id)
	}
	return found
}

// trackNumbers tracks as a client does that has numbers only.
func (s *stage) trackNumbers(id string, pids ...int) error {
	_, err := s.callForOne(s.t.Context(), Request{Verb: VerbTrack, ID: id, Pids: pids})
	return err
}

// TestANumberThatIsAnothersByNow: before a sandbox's process is tracked it has
// ended, and another child of the keeper has its number. The one is over, the
// other's life is its own.
func TestANumberThatIsAnothersByNow(t *testing.T) {
	if !processtest.Inside(t) {
		return
	}
	another := exec.CommandContext(t.Context(), "/proc/self/exe")
	another.Env = []string{roleVar + "=sleeper"}
	if err := another.Start(); err != nil {
		t.Fatal(err)
	}
	now, err := process.Of(another.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	was := process.ID{Pid: now.Pid, Start: now.Start - 1}
	r := newReaper()
	if _, err := r.adoptChild("first", birth{}, was, false); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("one that has not been reaped: %v", err)
	}
	r.dispatch(was.Pid, 9)
	for _, id := range []process.ID{was, {Pid: was.Pid}} {
		p, err := r.adoptChild("first", birth{}, id, false)
		if err != nil || p.isAlive() || p.exit.Signal != 9 {
			t.Fatalf("%v: %+v, %v", id, p, err)
		}
		if err := r.signalChild(p, syscall.SIGKILL, false); err != nil {
			t.Error(err)
		}
	}
	p, err := r.adoptChild("second", birth{}, now, false)
	if err != nil || !p.isAlive() {
		t.Errorf("the other: %+v, %v", p, err)
	}
	if _, err := r.adoptChild("third", birth{reaped: r.reaped}, now, false); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("the other, for a third sandbox: %v", err)
	}
	if stat, err := process.Read(now.Pid); err != nil || stat.Dead {
		t.Errorf("the other: %+v, %v", stat, err)
	}
	_ = another.Process.Kill()
	_ = another.Wait()
}
