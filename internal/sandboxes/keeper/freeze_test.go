package keeper

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// waiting calls Wait in the background.
func (s *stage) waiting(id string) <-chan ProcessExit {
	exits := make(chan ProcessExit, 1)
	go func() {
		exit, err := s.Wait(context.WithoutCancel(s.t.Context()), id)
		if err != nil {
			s.t.Error(err)
		}
		exits <- exit
	}()
	return exits
}

func (s *stage) get(id string) Sandbox {
	s.t.Helper()
	box, err := s.Get(s.t.Context(), id)
	s.must(err)
	return box
}

// shellStep is a step that runs a script.
func shellStep(script string) []string { return []string{"/bin/sh", "-c", script} }

// TestFreezeInPlace: the processes stand still, input waits, and all goes on.
func TestFreezeInPlace(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "cat")
	conn := s.attach("box", "c", 0)
	exits := s.waiting("box")
	for range 2 { // the second does nothing
		s.must(s.Freeze(t.Context(), Freeze{ID: "box"}))
	}
	if box := s.get("box"); !box.Frozen || !box.Alive || box.Exit != nil || len(box.Pids) != 1 {
		t.Errorf("frozen: %+v", box)
	}
	if err := s.Forget(t.Context(), "box"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("forgetting what is frozen: %v", err)
	}
	s.must(conn.WriteFrame(channel.FrameStdin, []byte("word")))
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Call(soon, "box", channel.Call{Kind: channel.CallPing}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call to a frozen guest: %v", err)
	}
	for range 2 {
		s.must(s.Thaw(t.Context(), Launch{ID: "box"}))
	}
	s.must(conn.WriteFrame(channel.FrameStdin, nil))
	if o := s.collect(conn); o.out.String() != "word" {
		t.Errorf("%q", &o.out)
	}
	select {
	case exit := <-exits:
		t.Errorf("wait ended with %+v", exit)
	default:
	}
	s.must(s.Kill(t.Context(), "box"))
	if exit := <-exits; exit != (ProcessExit{Code: 137, Signal: 9}) {
		t.Errorf("%+v", exit)
	}
}

// TestFreezeAndLaunchAgain: the processes end with the last step, the sandbox
// does not, and what thaws it brings new ones.
func TestFreezeAndLaunchAgain(t *testing.T) {
	s := newStage(t)
	self, err := os.Executable()
	s.must(err)
	pids := s.starter("box")
	s.must(s.Track(t.Context(), "box", identified(pids)))
	exits := s.waiting("box")
	steps := filepath.Join(s.dir, "steps")
	s.must(s.Freeze(t.Context(), Freeze{
		ID: "box", Dir: s.dir, Env: []string{"WORD=given"},
		Steps: [][]string{shellStep("echo one $WORD $PWD >>" + steps), shellStep("echo two >>" + steps)},
		Undo:  [][]string{shellStep("echo undone >>" + steps)},
	}))
	if text, err := os.ReadFile(steps); err != nil || string(text) != "one given "+s.dir+"\ntwo\n" {
		t.Errorf("the steps: %q, %v", text, err)
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if box := s.get("box"); !box.Frozen || !box.Alive || box.Exit != nil || len(box.Pids) != 0 {
		t.Errorf("frozen: %+v", box)
	}
	file := filepath.Join(s.dir, "again")
	again := Launch{ID: "box", Argv: []string{self}, Env: []string{roleVar + "=starter", raceVar, "PID_FILE=" + file}}
	failing := again
	failing.Env, failing.Log = []string{roleVar + "=failing starter"}, filepath.Join(s.dir, "log")
	if err := s.Thaw(t.Context(), failing); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "no such image") {
		t.Errorf("a thaw that fails: %v", err)
	}
	if box := s.get("box"); !box.Frozen || box.Moving {
		t.Errorf("after a thaw that failed: %+v", box)
	}
	s.must(s.Thaw(t.Context(), again))
	if box := s.get("box"); box.Frozen || !box.Alive || box.Exit != nil {
		t.Errorf("thawed: %+v", box)
	}
	text, err := os.ReadFile(file)
	s.must(err)
	pids = nil
	for f := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(f)
		s.must(err)
		pids = append(pids, pid)
	}
	s.must(s.Track(t.Context(), "box", identified(pids)))
	s.run("box", "c", ExecOptions{}, "echo", "new wire")
	if o := s.result("box", "c"); o.out.String() != "new wire" {
		t.Errorf("%q", &o.out)
	}
	s.must(syscall.Kill(pids[0], syscall.SIGTERM))
	if exit := <-exits; exit.Signal != int(syscall.SIGTERM) {
		t.Errorf("wait ended with %+v", exit)
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
}

// TestFreezeThatFails: it is taken back, told with the step's own words, and
// the guest goes on.
func TestFreezeThatFails(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	undone := filepath.Join(s.dir, "undone")
	err := s.Freeze(t.Context(), Freeze{
		ID: "box", Log: filepath.Join(s.dir, "log"),
		Steps: [][]string{shellStep("true"), shellStep("echo the disk is full >&2; exit 4"), shellStep("touch " + undone + ".never")},
		Undo:  [][]string{shellStep("exit 1"), shellStep("touch " + undone)},
	})
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "the disk is full") || !strings.Contains(err.Error(), "ended with 4") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(undone); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(undone + ".never"); err == nil {
		t.Error("a step was run after one that failed")
	}
	if box := s.get("box"); box.Frozen || box.Moving || !box.Alive {
		t.Errorf("%+v", box)
	}
	s.run("box", "c", ExecOptions{}, "echo", "on")
	if o := s.result("box", "c"); o.out.String() != "on" {
		t.Errorf("%q", &o.out)
	}
}

func TestFreezeRefuses(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.launch("dead", "guest")
	s.must(s.Kill(t.Context(), "dead"))
	loose := s.starter("loose")
	for name, tt := range map[string]struct {
		freeze Freeze
		want   error
	}{
		"an unknown one":    {Freeze{ID: "none"}, fault.ErrNotFound},
		"one that is dead":  {Freeze{ID: "dead"}, fault.ErrConflict},
		"nothing tracked":   {Freeze{ID: "loose"}, fault.ErrConflict},
		"a relative step":   {Freeze{ID: "box", Steps: [][]string{{"true"}}}, fault.ErrInvalid},
		"an empty undo":     {Freeze{ID: "box", Steps: [][]string{shellStep("true")}, Undo: [][]string{nil}}, fault.ErrInvalid},
		"a zero byte":       {Freeze{ID: "box", Steps: [][]string{{"/bin/true", "\x00"}}}, fault.ErrInvalid},
		"a relative log":    {Freeze{ID: "box", Log: "log"}, fault.ErrInvalid},
		"no such program":   {Freeze{ID: "box", Steps: [][]string{{"/no/such"}}}, fault.ErrUnavailable},
		"a log in no place": {Freeze{ID: "box", Log: "/no/such/log", Steps: [][]string{shellStep("true")}}, fault.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if err := s.Freeze(t.Context(), tt.freeze); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if box := s.get("box"); box.Frozen || box.Moving {
		t.Errorf("%+v", box)
	}
	s.must(s.Freeze(t.Context(), Freeze{ID: "box", Steps: [][]string{shellStep("true")}}))
	for name, l := range map[string]Launch{
		"attached":         {ID: "box", Argv: []string{"/bin/true"}, Attached: true},
		"a relative thing": {ID: "box", Argv: []string{"true"}},
	} {
		if err := s.Thaw(t.Context(), l); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !s.get("box").Frozen {
		t.Error("a refused thaw thawed")
	}
	s.must(s.Track(t.Context(), "loose", identified(loose))) // so that its processes end with the test
}

// TestKillDuringAFreeze: it ends the step that runs, and all that waits.
func TestKillDuringAFreeze(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	exits := s.waiting("box")
	begun := filepath.Join(s.dir, "begun")
	frozen := make(chan error, 1)
	go func() {
		frozen <- s.Freeze(t.Context(), Freeze{ID: "box", Steps: [][]string{shellStep("touch " + begun + "; sleep 1000")}})
	}()
	s.eventually("the step runs", func() bool { _, err := os.Stat(begun); return err == nil })
	if box := s.get("box"); !box.Moving || box.Frozen || !box.Alive {
		t.Errorf("%+v", box)
	}
	s.must(s.Kill(t.Context(), "box"))
	if err := <-frozen; err == nil {
		t.Error("the freeze succeeded")
	}
	if exit := <-exits; exit.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v", exit)
	}
	if box := s.get("box"); box.Alive || box.Frozen || box.Moving || box.Exit == nil {
		t.Errorf("%+v", box)
	}
	s.must(s.Forget(t.Context(), "box"))
}

// TestKillOfTheFrozen: commands end, waiting ends, nothing is left.
func TestKillOfTheFrozen(t *testing.T) {
	for name, steps := range map[string][][]string{"in place": nil, "on disk": {shellStep("true")}} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.launch("box", "guest")
			s.run("box", "c", ExecOptions{}, "cat")
			exits := s.waiting("box")
			s.must(s.Freeze(t.Context(), Freeze{ID: "box", Steps: steps}))
			s.must(s.Kill(t.Context(), "box"))
			if o := s.result("box", "c"); o.exit.Code != endedCode {
				t.Errorf("%+v", o.exit)
			}
			if exit := <-exits; exit.Signal != int(syscall.SIGKILL) {
				t.Errorf("%+v", exit)
			}
			if err := s.Thaw(t.Context(), Launch{ID: "box"}); !errors.Is(err, fault.ErrConflict) {
				t.Errorf("a thaw of the dead: %v", err)
			}
			s.must(s.Forget(t.Context(), "box"))
		})
	}
}

// TestFrozenTimeIsNoTimeOfAFirstFrame: a stream that the guest had opened, and
// not said what for, is not refused because the guest was frozen.
func TestFrozenTimeIsNoTimeOfAFirstFrame(t *testing.T) {
	const deadline = 300 * time.Millisecond
	s := newStage(t, func(c *Config) { c.FirstFrame = deadline })
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "slowopen")
	conn := s.attach("box", "c", 0)
	if _, p, err := s.said(conn); err != nil || string(p) != "opened" {
		t.Fatalf("%q, %v", p, err)
	}
	s.must(s.Freeze(t.Context(), Freeze{ID: "box"}))
	over := time.NewTimer(2 * deadline) // the time that must not count
	<-over.C
	s.must(s.Thaw(t.Context(), Launch{ID: "box"}))
	s.must(conn.WriteFrame(channel.FrameStdin, []byte("now")))
	if o := s.collect(conn); !strings.Contains(o.out.String(), "the gateway is not there") {
		t.Errorf("%q", &o.out)
	}
}

// TestAKillEndsAFreeze: who kills a sandbox that is being frozen or copied ends
// that at once, and it is told as what it is: the sandbox has ended.
func TestAKillEndsAFreeze(t *testing.T) {
	s := newStage(t)
	begun := filepath.Join(s.dir, "begun")
	for what, f := range map[string]Freeze{
		"a freeze in place":                 {},
		"a freeze":                          {Steps: [][]string{shellStep("true")}},
		"a copy":                            {Keep: true, Steps: [][]string{shellStep("true")}},
		"a copy whose program is under way": {Keep: true, Steps: [][]string{shellStep("touch " + begun + "; sleep 1000")}},
	} {
		f.ID = "box"
		underWay := func() bool { return s.get("box").Moving }
		role := "mute" // does not read what it was sent, so that the wire does not become quiet
		if strings.HasSuffix(what, "under way") {
			role = "guest"
			underWay = func() bool {
				_, err := os.Stat(begun)
				return err == nil
			}
		}
		s.eventually("a kill comes into "+what, func() bool {
			in, err := s.killWithin(f, role, underWay)
			if in && (!errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "ended while")) {
				t.Errorf("%s: %v", what, err)
			}
			return in
		})
	}
}

// TestASignalThatKillsEndsAFreeze: a freeze ends the processes, too, and is not taken for what
// somebody else did to them meanwhile.
func TestASignalThatKillsEndsAFreeze(t *testing.T) {
	s := newStage(t)
	begun, on := filepath.Join(s.dir, "begun"), filepath.Join(s.dir, "on")
	s.launch("box", "guest")
	exits := s.waiting("box")
	frozen := make(chan error, 1)
	go func() {
		frozen <- s.Freeze(t.Context(), Freeze{ID: "box", Steps: [][]string{shellStep("touch " + begun + "; until [ -e " + on + " ]; do sleep 0.01; done")}})
	}()
	s.eventually("it is being frozen", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	s.must(s.Signal(t.Context(), "box", int(syscall.SIGKILL)))
	s.must(os.WriteFile(on, nil, 0o600))
	if err := <-frozen; !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "ended while") {
		t.Fatalf("the freeze: %v", err)
	}
	if exit := <-exits; exit.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v", exit)
	}
	if box := s.get("box"); box.Alive || box.Frozen || box.Moving || box.Exit == nil {
		t.Errorf("%+v", box)
	}
	s.must(s.Forget(t.Context(), "box"))
}

// TestAKilledFreezeIsTakenBack: what a step holds still can't die before it is let go, so that
// a kill does not reach what takes the steps back; no other step begins.
func TestAKilledFreezeIsTakenBack(t *testing.T) {
	for name, kill := range map[string]func(s *stage) error{
		"killed":   func(s *stage) error { return s.Kill(s.t.Context(), "box") },
		"signaled": func(s *stage) error { return s.Signal(s.t.Context(), "box", int(syscall.SIGKILL)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			file := func(name string) string { return filepath.Join(s.dir, name) }
			s.launch("box", "guest")
			exits := s.waiting("box")
			frozen := make(chan error, 1)
			go func() {
				frozen <- s.Freeze(t.Context(), Freeze{
					ID:    "box",
					Steps: [][]string{shellStep("touch " + file("held") + "; until [ -e " + file("on") + " ]; do sleep 0.01; done"), shellStep("touch " + file("next"))},
					Undo:  [][]string{shellStep("for i in 1 2 3 4 5; do sleep 0.05; done; touch " + file("undone"))},
				})
			}()
			there := func(name string) func() bool {
				return func() bool {
					_, err := os.Stat(file(name))
					return err == nil
				}
			}
			s.eventually("a step holds it", there("held"))
			s.must(kill(s))
			s.must(os.WriteFile(file("on"), nil, 0o600))
			if err := <-frozen; !errors.Is(err, fault.ErrConflict) {
				t.Errorf("the freeze: %v", err)
			}
			if !there("undone")() || there("next")() {
				t.Errorf("taken back: %t; went on: %t", there("undone")(), there("next")())
			}
			if exit := <-exits; exit.Signal != int(syscall.SIGKILL) {
				t.Errorf("%+v", exit)
			}
			s.must(s.Forget(t.Context(), "box"))
		})
	}
}

// killWithin kills a sandbox during its freeze. It has not come to that if the
// freeze ended before the question that was to hold it up was on its way.
func (s *stage) killWithin(f Freeze, role string, underWay func() bool) (in bool, err error) {
	s.launch("box", role)
	asked, cancel := context.WithCancel(s.t.Context())
	called := make(chan struct{})
	go func() {
		defer close(called)
		_, _ = s.Call(asked, "box", channel.Call{Kind: channel.CallPing})
	}()
	frozen := make(chan error, 1)
	go func() { frozen <- s.Freeze(s.t.Context(), f) }()
	s.eventually("it is being frozen", func() bool {
		in = underWay()
		return in || len(frozen) > 0
	})
	s.must(s.Kill(s.t.Context(), "box"))
	err = <-frozen
	cancel()
	<-called
	s.must(s.Forget(s.t.Context(), "box"))
	return in && err != nil, err
}
