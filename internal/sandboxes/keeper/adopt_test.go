package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// copied is a launch of a copy whose guest has a role.
func (s *stage) copied(id, role string) Launch {
	s.t.Helper()
	self, err := os.Executable()
	s.must(err)
	return Launch{
		ID: id, Argv: []string{self}, Env: []string{roleVar + "=" + role, raceVar}, Dir: "/", Log: filepath.Join(s.dir, id+".log"), Attached: true, Reset: true,
	}
}

// children are the processes that the keeper has started and not reaped, by its threads.
func (s *stage) children() string {
	s.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.keeper.Process.Pid))
	s.must(err)
	var all []string
	for _, path := range lists {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) { // a thread may end
			s.must(err)
		}
		all = append(all, strings.Fields(string(text))...)
	}
	return strings.Join(all, " ")
}

// TestAdopt: a command that came with a copy is one like any other.
func TestAdopt(t *testing.T) {
	s := newStage(t)
	_, err := s.Launch(t.Context(), s.copied("box", "guest"))
	s.must(err)
	s.run("box", "c", ExecOptions{}, "echo", "new")
	if o := s.result("box", "c"); o.out.String() != "new" {
		t.Errorf("a new command of a copy: %q", &o.out)
	}
	began := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	source := Command{ID: "shell", Argv: []string{"sh", "-i"}, Started: began, Terminal: true, Exit: &channel.Exit{Code: 3}, Offset: 77}
	s.must(s.Adopt(t.Context(), "box", source, ExecOptions{AwaitReader: true}))
	var got Command
	for _, c := range s.get("box").Commands {
		if c.ID == "shell" {
			got = c
		}
	}
	if !got.Started.Equal(began) || !got.Terminal || got.Exit != nil || strings.Join(got.Argv, " ") != "sh -i" || got.Offset > int64(len("held back ")) {
		t.Errorf("%+v", got)
	}
	conn := s.attach("box", "shell", 0)
	s.must(conn.WriteFrame(channel.FrameStdin, []byte("word")))
	s.must(conn.WriteFrame(channel.FrameStdin, nil))
	if o := s.collect(conn); o.out.String() != "held back word" || o.exit.StdoutBytes != int64(len("held back word")) {
		t.Errorf("%q %+v", &o.out, o.exit)
	}
	for name, tt := range map[string]struct {
		command Command
		want    error
	}{
		"none in the guest": {Command{ID: "gone"}, fault.ErrNotFound},
		"an id that is had": {Command{ID: "shell"}, fault.ErrConflict},
		"no id":             {Command{}, fault.ErrInvalid},
	} {
		if err := s.Adopt(t.Context(), "box", tt.command, ExecOptions{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.must(s.Kill(t.Context(), "box"))
	s.must(s.Forget(t.Context(), "box"))
}

// TestCopyThatDoesNotAnswer: it is not launched, and nothing of it stays.
func TestCopyThatDoesNotAnswer(t *testing.T) {
	s := newStage(t)
	for _, role := range slices.Repeat([]string{"failing starter", "no such role"}, 20) { // they end
		if _, err := s.Launch(t.Context(), s.copied("box", role)); !errors.Is(err, fault.ErrUnavailable) {
			t.Errorf("%s: %v", role, err)
		}
		if left := s.children(); left != "" {
			t.Errorf("%s: the keeper has the processes %s when that is told", role, left)
		}
	}
	launched := make(chan error, 1)
	go func() { // it never says anything: only a kill, or much time, ends the waiting
		_, err := s.Launch(context.WithoutCancel(t.Context()), s.copied("mute", "mute"))
		launched <- err
	}()
	s.eventually("it is in the list", func() bool {
		boxes, err := s.List(t.Context())
		return err == nil && len(boxes) == 1 && len(boxes[0].Pids) == 1
	})
	pid := s.get("mute").Pids[0]
	if left := s.children(); left != strconv.Itoa(pid) { // the control
		t.Errorf("the keeper's processes are %q, and not %d", left, pid)
	}
	s.must(s.Kill(t.Context(), "mute"))
	if err := <-launched; !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if boxes, err := s.List(t.Context()); err != nil || len(boxes) != 0 || !gone(pid) {
		t.Errorf("left are %+v (%v), and process %d: %t", boxes, err, pid, !gone(pid))
	}
}

// TestKeep: the sandbox goes on after the steps, which it did not hear through.
func TestKeep(t *testing.T) {
	s := newStage(t)
	pids := s.launch("box", "guest").Pids
	s.run("box", "c", ExecOptions{}, "cat")
	conn := s.attach("box", "c", 0)
	exits := s.waiting("box")
	begun, finish := filepath.Join(s.dir, "begun"), filepath.Join(s.dir, "finish")
	kept := make(chan error, 1)
	go func() {
		kept <- s.Freeze(t.Context(), Freeze{ID: "box", Keep: true, Steps: [][]string{
			shellStep("touch " + begun + "; until test -e " + finish + "; do sleep 0.01; done"), shellStep("true"),
		}})
	}()
	s.eventually("the step runs", func() bool { _, err := os.Stat(begun); return err == nil })
	if box := s.get("box"); !box.Moving || box.Frozen || !box.Alive || len(box.Pids) != 1 {
		t.Errorf("meanwhile: %+v", box)
	}
	s.must(conn.WriteFrame(channel.FrameStdin, []byte("meanwhile")))
	s.must(os.WriteFile(finish, nil, 0o600))
	s.must(<-kept)
	if box := s.get("box"); box.Moving || box.Frozen || !box.Alive || len(box.Pids) != 1 || box.Pids[0] != pids[0] {
		t.Errorf("afterwards: %+v", box)
	}
	s.must(conn.WriteFrame(channel.FrameStdin, nil))
	if o := s.collect(conn); o.out.String() != "meanwhile" {
		t.Errorf("%q", &o.out)
	}
	undone := filepath.Join(s.dir, "undone")
	err := s.Freeze(t.Context(), Freeze{ID: "box", Keep: true, Steps: [][]string{shellStep("exit 4")}, Undo: [][]string{shellStep("touch " + undone)}})
	if _, there := os.Stat(undone); !errors.Is(err, fault.ErrUnavailable) || there != nil {
		t.Errorf("a step that fails: %v; undone: %v", err, there)
	}
	if err := s.Freeze(t.Context(), Freeze{ID: "box", Keep: true}); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no steps: %v", err)
	}
	s.must(s.Freeze(t.Context(), Freeze{ID: "box"}))
	if err := s.Freeze(t.Context(), Freeze{ID: "box", Keep: true, Steps: [][]string{shellStep("true")}}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("of what is frozen: %v", err)
	}
	s.must(s.Thaw(t.Context(), Launch{ID: "box"}))
	select {
	case exit := <-exits:
		t.Errorf("wait ended with %+v", exit)
	default:
	}
	err = s.Freeze(t.Context(), Freeze{ID: "box", Keep: true, Steps: [][]string{shellStep("kill -9 " + strconv.Itoa(pids[0]) + "")}})
	if exit := <-exits; exit.Signal != int(syscall.SIGKILL) {
		t.Errorf("%+v", exit)
	}
	if err != nil && !errors.Is(err, fault.ErrConflict) {
		t.Errorf("one that ended meanwhile: %v", err)
	}
	if box := s.get("box"); box.Alive || box.Frozen || box.Moving {
		t.Errorf("%+v", box)
	}
}
