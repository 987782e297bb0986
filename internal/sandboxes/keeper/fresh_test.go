package keeper

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// parted freezes a sandbox so that nothing of its guest is kept, and returns what
// starts it anew, with the file where that writes its processes.
func (s *stage) parted(id string) (again Launch, file string) {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	s.must(s.Freeze(s.t.Context(), Freeze{ID: id, Fresh: true, Dir: s.dir, Steps: [][]string{shellStep("echo files >" + filepath.Join(s.dir, id+".files"))}}))
	if box := s.get(id); !box.Frozen || !box.Alive || box.Exit != nil || len(box.Pids) != 0 {
		s.t.Errorf("frozen: %+v", box)
	}
	file = filepath.Join(s.dir, id+".again")
	return Launch{ID: id, Fresh: true, Argv: []string{self}, Env: []string{roleVar + "=starter", raceVar, "PID_FILE=" + file}}, file
}

// trackAgain names the processes that a starter left.
func (s *stage) trackAgain(id, file string) []int {
	s.t.Helper()
	text, err := os.ReadFile(file)
	s.must(err)
	var pids []int
	for f := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(f)
		s.must(err)
		pids = append(pids, pid)
	}
	s.must(s.Track(s.t.Context(), id, identified(pids)))
	return pids
}

// TestFrozenAndStartedAnew: of a freeze with Fresh the sandbox is left and its guest
// is not. Commands that ran end at once and say why; who waited for the sandbox waits for the
// one that is started in its place.
func TestFrozenAndStartedAnew(t *testing.T) {
	s := newStage(t)
	s.must(s.Track(t.Context(), "box", identified(s.starter("box"))))
	s.must(s.SetMeta(t.Context(), "box", []byte(`{"mine":1}`)))
	exits := s.waiting("box")
	s.run("box", "before", ExecOptions{}, "echo", "word")
	s.result("box", "before")
	s.run("box", "cut", ExecOptions{}, "cat")
	again, file := s.parted("box")
	if o := s.result("box", "cut"); o.exit.Code != endedCode || !strings.Contains(o.exit.Error, "only its files were kept") {
		t.Errorf("a command that was cut off: %+v", o.exit)
	}
	plain := again
	plain.Fresh = false
	if err := s.Thaw(t.Context(), plain); !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "started anew") {
		t.Errorf("thawed as if it had its memory: %v", err)
	}
	failing := again
	failing.Env, failing.Log = []string{roleVar + "=failing starter"}, filepath.Join(s.dir, "log")
	if err := s.Thaw(t.Context(), failing); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("a start that fails: %v", err)
	}
	if box := s.get("box"); !box.Frozen || box.Moving || !box.Alive {
		t.Errorf("after a start that failed: %+v", box)
	}
	s.must(s.Thaw(t.Context(), again))
	pids := s.trackAgain("box", file)
	box := s.get("box")
	if box.Frozen || !box.Alive || box.Exit != nil || string(box.Meta) != `{"mine":1}` || len(box.Commands) != 2 {
		t.Errorf("started anew: %+v", box)
	}
	if o := s.result("box", "before"); o.out.String() != "word" {
		t.Errorf("what a command wrote before is %q", &o.out)
	}
	s.run("box", "after", ExecOptions{}, "echo", "new guest")
	if o := s.result("box", "after"); o.out.String() != "new guest" {
		t.Errorf("%q", &o.out)
	}
	s.must(syscall.Kill(pids[0], syscall.SIGTERM))
	if exit := <-exits; exit.Signal != int(syscall.SIGTERM) {
		t.Errorf("wait ended with %+v", exit)
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
}

// TestFrozenAndStartedAnewTwice: its second guest is as good as its first.
func TestFrozenAndStartedAnewTwice(t *testing.T) {
	s := newStage(t)
	s.must(s.Track(t.Context(), "box", identified(s.starter("box"))))
	for range 2 {
		again, file := s.parted("box")
		s.must(s.Thaw(t.Context(), again))
		s.trackAgain("box", file)
	}
	s.run("box", "c", ExecOptions{}, "echo", "third")
	if o := s.result("box", "c"); o.out.String() != "third" {
		t.Errorf("%q", &o.out)
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
}

// TestKilledWhileStartedAnew: a kill while the new guest is being started ends that,
// and nothing of either is left.
func TestKilledWhileStartedAnew(t *testing.T) {
	s := newStage(t)
	s.must(s.Track(t.Context(), "box", identified(s.starter("box"))))
	again, _ := s.parted("box")
	again.Argv, again.Env = []string{"/bin/sh", "-c", "sleep 600"}, []string{"PATH=/usr/bin:/bin"}
	thawed := make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() { thawed <- s.Thaw(ctx, again) }()
	s.eventually("the start is under way", func() bool { return s.get("box").Moving })
	s.must(s.Kill(t.Context(), "box"))
	if err := <-thawed; !errors.Is(err, fault.ErrConflict) {
		t.Errorf("the thaw of what was killed: %v", err)
	}
	if box := s.get("box"); box.Alive || box.Frozen {
		t.Errorf("killed: %+v", box)
	}
	s.must(s.Forget(t.Context(), "box"))
}

func TestAFreezeThatKeepsNoMemoryRefuses(t *testing.T) {
	s := newStage(t)
	s.must(s.Track(t.Context(), "box", identified(s.starter("box"))))
	for name, f := range map[string]Freeze{
		"no steps": {ID: "box", Fresh: true}, "it goes on": {ID: "box", Fresh: true, Keep: true, Steps: [][]string{{"/bin/true"}}},
	} {
		if err := s.Freeze(t.Context(), f); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
}

// TestAStreamThatEndsBeforeTheChannel: the streams of a session end a moment before it is closed for
// all. A command whose stream does is told why the sandbox went, as it is a moment later. The
// control is an agent that closes the stream of a command while the session lives.
func TestAStreamThatEndsBeforeTheChannel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(ours *channel.Session, theirs *channel.Conn) error
		want string
	}{
		"the session": {func(ours *channel.Session, _ *channel.Conn) error { return ours.Close() }, "it was paused"},
		"the stream":  {func(_ *channel.Session, theirs *channel.Conn) error { return theirs.Close() }, "gave no exit status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			ours, err := channel.NewHostSession(near)
			if err != nil {
				t.Fatal(err)
			}
			defer ours.Close()
			theirs, err := channel.NewGuestSession(far)
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			stream, err := ours.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			other, err := theirs.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.end(ours, other); err != nil {
				t.Fatal(err)
			}
			exit := (&keptCommand{}).readGuest(stream, make(chan struct{}), func() string { return "it was paused" })
			if !strings.Contains(exit.Error, c.want) {
				t.Errorf("told %q, not %q", exit.Error, c.want)
			}
		})
	}
}
