package guest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// heldUp is a program of which nobody's start comes to its end, because its owner has the kernel wait
// for him.
func heldUp(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "own")
	text, err := os.ReadFile("/bin/sleep")
	if err == nil {
		err = os.WriteFile(path, text, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(err)
	}
	return path
}

// isHeldUp tells whether the kernel waits for the owner of an open file, whose inode this is.
func isHeldUp(t *testing.T, path string) bool {
	t.Helper()
	var on unix.Stat_t
	if err := unix.Stat(path, &on); err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		if strings.Contains(line, "BREAKING") && strings.Contains(line, ":"+strconv.FormatUint(on.Ino, 10)+" ") {
			return true
		}
	}
	return false
}

// TestAKillOfAStartThatIsHeldUpIsDone: it does not wait for whoever holds the start up, and what was
// killed does not begin when it is let go. The control is another command beside it.
func TestAKillOfAStartThatIsHeldUpIsDone(t *testing.T) {
	for _, tree := range []bool{true, false} {
		t.Run("of a tree "+strconv.FormatBool(tree), func(t *testing.T) {
			a := startAgent(t, nil)
			own := heldUp(t)
			held := a.start(channel.Exec{ID: "held", Argv: []string{own, "1000"}})
			for !isHeldUp(t, own) {
				if t.Context().Err() != nil {
					t.Fatal("nothing is held up")
				}
			}
			free := a.start(channel.Exec{ID: "free", Argv: []string{"sh", "-c", "echo begun; sleep 1000"}})
			free.until("begun")
			kill := channel.Signal{Name: "KILL", Tree: tree}
			if reply := a.control("free", kill); !reply.OK || !isHeldUp(t, own) {
				t.Fatalf("the control: %+v", reply)
			}
			if reply := a.control("held", kill); !reply.OK {
				t.Errorf("the kill waited until the start was given up: %+v", reply)
			}
			if exit := held.wait(); exit.Signal != "KILL" || exit.Code != 137 {
				t.Errorf("its end: %+v", exit)
			}
		})
	}
}

// TestWhatWasKilledIsNeverStarted: a command that has no process yet when it is killed gets none.
func TestWhatWasKilledIsNeverStarted(t *testing.T) {
	for _, killed := range []bool{false, true} {
		a := startAgent(t, nil)
		out := filepath.Join(t.TempDir(), "ran")
		c := &execCommand{
			agent: a.agent, exec: &channel.Exec{ID: "it", Argv: []string{"/bin/sh", "-c", "echo > " + out}}, dir: "/",
			runs: make(chan struct{}), ended: make(chan struct{}), over: make(chan struct{}),
		}
		c.user.UID, c.user.GID = os.Getuid(), os.Getgid()
		if killed {
			if err := c.signalCommand(channel.Signal{Name: "KILL", Tree: true}); err != nil {
				t.Fatal(err)
			}
		}
		failed := c.startProgram()
		if killed != (failed != nil) || killed && (failed.code != 137 || failed.signal != "KILL") {
			t.Fatalf("killed %v: %+v", killed, failed)
		}
		if !killed {
			<-c.done
			c.stdio.closePipes()
		}
		if _, err := os.Stat(out); killed != os.IsNotExist(err) {
			t.Errorf("killed %v: %v", killed, err)
		}
	}
}
