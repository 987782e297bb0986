package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

func TestLaunchListKillForget(t *testing.T) {
	s := newStage(t)
	box := s.launch("one", "guest")
	if len(box.Pids) != 1 || !box.Alive || string(box.Meta) != "null" {
		t.Fatalf("%+v", box)
	}
	s.must(s.SetMeta(t.Context(), "one", json.RawMessage(`{"a": [1]}`)))
	s.launch("two", "guest")
	s.run("one", "c1", ExecOptions{}, "echo", "hello")
	if o := s.result("one", "c1"); o.out.String() != "hello" || o.exit.Code != 0 || o.exit.StdoutBytes != 5 || o.exit.StderrBytes != 0 || o.exit.Truncated {
		t.Errorf("%q, %+v", &o.out, o.exit)
	}
	list, err := s.List(t.Context())
	s.must(err)
	if len(list) != 2 || list[0].ID != "one" || list[1].ID != "two" || string(list[0].Meta) != `{"a":[1]}` && string(list[0].Meta) != `{"a": [1]}` {
		t.Fatalf("%+v", list)
	}
	if len(list[0].Commands) != 1 || list[0].Commands[0].Offset != 5 || list[0].Commands[0].Exit == nil || list[0].Commands[0].Argv[1] != "hello" {
		t.Errorf("%+v", list[0].Commands)
	}
	if err := s.Forget(t.Context(), "one"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("forget of a living sandbox: %v", err)
	}
	if err := s.Shutdown(t.Context()); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("shutdown with living sandboxes: %v", err)
	}
	s.must(s.Kill(t.Context(), "one"))
	if !gone(box.Pids[0]) {
		t.Error("kill returned before its process was reaped")
	}
	s.must(s.Kill(t.Context(), "one")) // again does nothing
	dead, err := s.Get(t.Context(), "one")
	s.must(err)
	if dead.Alive || len(dead.Pids) != 0 || dead.Exit == nil || dead.Exit.Signal != int(syscall.SIGKILL) || dead.Exit.Code != 137 {
		t.Errorf("%+v, %+v", dead, dead.Exit)
	}
	s.must(s.Forget(t.Context(), "one"))
	if _, err := s.Get(t.Context(), "one"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a forgotten sandbox: %v", err)
	}
	s.must(s.Kill(t.Context(), "two"))
	s.must(s.Shutdown(t.Context()))
	if _, err := os.Stat(filepath.Join(s.dir, "k.sock")); err == nil {
		s.eventually("the socket is gone", func() bool {
			_, err := os.Stat(filepath.Join(s.dir, "k.sock"))
			return errors.Is(err, os.ErrNotExist)
		})
	}
}

// starter launches a starter that leaves two processes, and returns their pids.
func (s *stage) starter(id string) []int {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	file := filepath.Join(s.dir, id+".pids")
	box, err := s.Launch(s.t.Context(), Launch{ID: id, Argv: []string{self}, Env: []string{roleVar + "=starter", raceVar, "PID_FILE=" + file}})
	s.must(err)
	if !box.Alive || len(box.Pids) != 0 {
		s.t.Errorf("before it is tracked: %+v", box)
	}
	text, err := os.ReadFile(file)
	s.must(err)
	var pids []int
	for f := range strings.FieldsSeq(string(text)) {
		pid, err := strconv.Atoi(f)
		s.must(err)
		pids = append(pids, pid)
	}
	return pids
}

func TestStarterLeavesItsProcessesToTheKeeper(t *testing.T) {
	s := newStage(t)
	pids := s.starter("box")
	if _, err := s.Wait(t.Context(), "box"); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("wait before track: %v", err)
	}
	for _, alien := range []int{os.Getpid(), s.keeper.Process.Pid} {
		if err := s.trackNumbers("box", alien); !errors.Is(err, fault.ErrConflict) {
			t.Errorf("track of %d, no child of the keeper: %v", alien, err)
		}
	}
	s.must(s.Track(t.Context(), "box", identified(pids)))
	s.run("box", "c", ExecOptions{}, "echo", "from a grandchild")
	if o := s.result("box", "c"); o.out.String() != "from a grandchild" {
		t.Errorf("%q", &o.out)
	}
	exits := make(chan ProcessExit, 1)
	go func() {
		exit, err := s.Wait(t.Context(), "box")
		if err != nil {
			t.Error(err)
		}
		exits <- exit
	}()
	s.must(s.Signal(t.Context(), "box", int(syscall.SIGSTOP))) // a frozen sandbox dies too
	s.must(s.Kill(t.Context(), "box"))
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
	if exit := <-exits; exit != (ProcessExit{Code: 137, Signal: 9}) {
		t.Errorf("%+v", exit)
	}
	s.must(s.Track(t.Context(), "box", identified(pids))) // late: their exits are remembered
	s.must(s.Forget(t.Context(), "box"))
}

func TestKillOfWhatNobodyTracked(t *testing.T) {
	s := newStage(t)
	pids := s.starter("box")
	s.must(s.Kill(t.Context(), "box")) // only its wire is known
	s.eventually("the guest has ended with its wire", func() bool { return gone(pids[0]) })
	s.must(s.Forget(t.Context(), "box"))
	if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) { // it may have ended with its sibling
		t.Fatal(err)
	}
	s.eventually("a stray is reaped", func() bool { return gone(pids[1]) })
}

func TestLaunchRefuses(t *testing.T) {
	s := newStage(t)
	self, err := os.Executable()
	s.must(err)
	good := Launch{ID: "x", Argv: []string{self}, Env: []string{roleVar + "=guest"}, Attached: true}
	s.launch("taken", "guest")
	tests := []struct {
		name   string
		change func(*Launch)
		want   error
	}{
		{"no id", func(l *Launch) { l.ID = "" }, fault.ErrInvalid},
		{"a path as id", func(l *Launch) { l.ID = "../x" }, fault.ErrInvalid},
		{"a taken id", func(l *Launch) { l.ID = "taken" }, fault.ErrConflict},
		{"no program", func(l *Launch) { l.Argv = nil }, fault.ErrInvalid},
		{"a program by name", func(l *Launch) { l.Argv = []string{"true"} }, fault.ErrInvalid},
		{"no such program", func(l *Launch) { l.Argv = []string{"/no/such"} }, fault.ErrUnavailable},
		{"no such directory", func(l *Launch) { l.Dir = "/no/such" }, fault.ErrUnavailable},
		{"a zero byte", func(l *Launch) { l.Env = []string{"A=\x00"} }, fault.ErrInvalid},
		{"a relative log", func(l *Launch) { l.Log = "log" }, fault.ErrInvalid},
		{"a log in no directory", func(l *Launch) { l.Log = "/no/such/log" }, fault.ErrInvalid},
		{"large meta", func(l *Launch) { l.Meta = json.RawMessage(`"` + strings.Repeat("x", maxMeta) + `"`) }, fault.ErrInvalid},
		{"a request too long", func(l *Launch) { l.Env = []string{strings.Repeat("x", channel.MaxJSON)} }, fault.ErrInvalid},
		{"no such cgroup", func(l *Launch) {
			l.CgroupProcs, l.Attached = []string{"/no/such/cgroup.procs"}, false
		}, fault.ErrUnavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := good
			tt.change(&l)
			if _, err := s.Launch(t.Context(), l); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("half-made sandboxes: %+v, %v", list, err)
	}
	_, err = s.Launch(t.Context(), good)
	s.must(err)
}

func TestFailedStarterTellsItsLog(t *testing.T) {
	s := newStage(t)
	self, err := os.Executable()
	s.must(err)
	log := filepath.Join(s.dir, "log")
	s.must(os.WriteFile(log, []byte("of the run before\n"), 0o600))
	_, err = s.Launch(t.Context(), Launch{ID: "x", Argv: []string{self}, Env: []string{roleVar + "=failing starter"}, Log: log})
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "no such image") || !strings.Contains(err.Error(), "ended with 3") {
		t.Errorf("%v", err)
	}
	if strings.ContainsAny(err.Error(), "\x1b\x00") || strings.Contains(err.Error(), "before") {
		t.Errorf("%q", err)
	}
}

// TestGuestThatNeverAnsweredTellsItsLog: one that ends at its start, and nothing
// else knows why.
func TestGuestThatNeverAnsweredTellsItsLog(t *testing.T) {
	s := newStage(t)
	self, err := os.Executable()
	s.must(err)
	log := filepath.Join(s.dir, "log")
	s.must(os.WriteFile(log, []byte("of the run before\n"), 0o600))
	_, err = s.Launch(t.Context(), Launch{ID: "x", Argv: []string{self}, Env: []string{roleVar + "=failing starter"}, Log: log, Attached: true})
	s.must(err)
	_, err = s.Call(t.Context(), "x", channel.Call{Kind: channel.CallPing})
	if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "no such image") || strings.Contains(err.Error(), "before") {
		t.Errorf("%v", err)
	}
}

// TestKeeperOutlivesItsClients: one is killed while a command runs; the next
// finds the sandbox, the output and the exit.
func TestKeeperOutlivesItsClients(t *testing.T) {
	s := newStage(t)
	s.launch("box", "guest")
	s.run("box", "c", ExecOptions{}, "cat")
	first := s.attach("box", "c", 0)
	s.must(first.WriteFrame(channel.FrameStdin, []byte("one")))
	if _, p, err := s.said(first); err != nil || string(p) != "one" {
		t.Fatalf("%q, %v", p, err)
	}
	_ = first.Raw().Close()
	next := Dial(filepath.Join(s.dir, "k.sock"))
	box, err := next.Get(t.Context(), "box")
	s.must(err)
	if len(box.Commands) != 1 || box.Commands[0].Exit != nil || box.Commands[0].Offset != 3 {
		t.Fatalf("%+v", box.Commands)
	}
	second := s.attach("box", "c", 1)
	s.must(second.WriteFrame(channel.FrameStdin, []byte(" two")))
	s.must(second.WriteFrame(channel.FrameStdin, nil))
	if o := s.collect(second); o.out.String() != "ne two" {
		t.Errorf("%q", &o.out)
	}
	if o := s.result("box", "c"); o.out.String() != "one two" || o.exit.StdoutBytes != 7 {
		t.Errorf("after its end: %q, %+v", &o.out, o.exit)
	}
}

// TestStorm: many sandboxes at once, launched, used, killed and forgotten.
func TestStorm(t *testing.T) {
	s := newStage(t)
	descriptors := func() int {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.keeper.Process.Pid))
		s.must(err)
		return len(fds)
	}
	s.must(s.Ping(t.Context()))
	before := descriptors()
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			id := fmt.Sprintf("box%d", i)
			for range 3 {
				box := s.launch(id, "guest")
				s.run(id, "c", ExecOptions{}, "code", strconv.Itoa(i))
				if o := s.result(id, "c"); o.exit.Code != i {
					t.Errorf("%+v", o.exit)
				}
				if err := errors.Join(s.Kill(t.Context(), id), s.Forget(t.Context(), id)); err != nil || !gone(box.Pids[0]) {
					t.Errorf("%v, gone %t", err, gone(box.Pids[0]))
				}
			}
		})
	}
	all.Wait()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", s.keeper.Process.Pid, s.keeper.Process.Pid))
	if err == nil && strings.TrimSpace(string(children)) != "" {
		t.Errorf("children left: %s", children)
	}
	s.eventually("descriptors are back", func() bool {
		return descriptors() <= before+2 // connections that are kept for the next call
	})
}

func TestASecondKeeperIsRefused(t *testing.T) {
	s := newStage(t)
	err := NewServer(Config{Socket: filepath.Join(s.dir, "k.sock")}).lockOnly(t.Context())
	if !errors.Is(err, fault.ErrConflict) {
		t.Errorf("got %v", err)
	}
	s.must(s.Ping(t.Context()))
	info, err := os.Stat(filepath.Join(s.dir, "k.sock"))
	s.must(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// lockOnly does the part of Run that a second keeper gets to.
func (s *Server) lockOnly(ctx context.Context) error {
	l, err := listen(ctx, s.cfg.Socket)
	if err == nil {
		l.closeListener()
	}
	return err
}

func TestNoKeeper(t *testing.T) {
	if err := Dial("/no/such/socket").Ping(t.Context()); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAKeeperThatIsStoppedTakesItsSandboxesAlong(t *testing.T) {
	s := newStage(t)
	pids := s.starter("a")
	s.must(s.Track(t.Context(), "a", identified(pids)))
	pids = append(pids, s.launch("b", "mute").Pids...)
	s.must(s.keeper.Process.Signal(syscall.SIGTERM))
	for _, pid := range pids {
		s.eventually("it is gone", func() bool { return gone(pid) })
	}
}
