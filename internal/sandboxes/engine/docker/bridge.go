package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/cgroup"
)

// The files that a stage reads and writes in its folder.
const (
	taskName = "task.json"
	bornName = "born.json" // written when the container runs
	endName  = "end.json"  // written when it has ended
	logName  = "docker.log"
)

// The tasks of a stage.
const (
	taskBridge = "bridge"
	taskPack   = "pack"
	taskGoOn   = "go on"
)

// mostWords bounds what PID 1 may write to the log in its life.
const mostWords = 1 << 20

// drainTimeout bounds the wait for what an ended container has written.
const drainTimeout = 5 * time.Second

// task is what a stage is to do.
type task struct {
	Task      string `json:"task"`
	Host      string `json:"host"`
	Container string `json:"container"`
	Place     string `json:"place,omitempty"` // of the ground
	To        string `json:"to,omitempty"`    // a file
}

// born is a container that runs: the process that the service started for it.
type born struct {
	Process process.ID `json:"process"`
}

// ended is how a container ended, as the service says.
type ended struct {
	Code int  `json:"code"`
	OOM  bool `json:"oom"`
}

// Stage does the task in a folder. As the bridge of a container it attaches to it, starts
// it, and carries the channel, which is its standard input and output, until the container
// ends; then it ends in the same way. It returns on errors only.
func Stage(dir string) error {
	var t task
	if err := readJSON(filepath.Join(dir, taskName), &t); err != nil {
		return err
	}
	ctx := context.Background()
	switch t.Task {
	case taskBridge:
		return bridge(ctx, dir, t)
	case taskPack:
		return endUnlessFailed(packed(ctx, t))
	case taskGoOn:
		return endUnlessFailed(letGoOn(ctx, t))
	}
	return fmt.Errorf("the task %q of %s is unknown", t.Task, dir)
}

// endUnlessFailed ends the process if nothing went wrong.
func endUnlessFailed(err error) error {
	if err == nil {
		os.Exit(0)
	}
	return err
}

func bridge(ctx context.Context, dir string, t task) error {
	wire, err := net.FileConn(os.Stdin)
	if err != nil {
		return fmt.Errorf("the bridge's standard input is no channel: %w", err)
	}
	s, err := dialHost(ctx, t.Host)
	if err != nil {
		return err
	}
	// Before the start: what PID 1 writes first is for nobody else.
	stream, err := s.ContainerAttach(ctx, t.Container, client.ContainerAttachOptions{Stream: true, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		return fmt.Errorf("attach to the container: %w", err)
	}
	waiting := s.ContainerWait(ctx, t.Container, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := s.ContainerStart(ctx, t.Container, client.ContainerStartOptions{}); err != nil {
		return fmt.Errorf("start the container: %w", err)
	}
	first, err := firstOf(ctx, s, t.Container)
	if err == nil && first != nil {
		defer first.Close()
		err = writeJSON(filepath.Join(dir, bornName), born{Process: first.ID})
	}
	if err != nil { // nobody would find its process, once the service is gone
		_, failed := s.ContainerKill(ctx, t.Container, client.ContainerKillOptions{Signal: "KILL"})
		if failed != nil && first != nil {
			failed = first.Signal(unix.SIGKILL)
		}
		return errors.Join(err, failed)
	}
	drained := carryBoth(wire, stream)
	r, err := awaitExit(waiting, drained)
	if err == nil {
		return finishContainer(ctx, s, dir, t, r, drained, first)
	}
	// Without the service nothing reaches the container any more.
	if first != nil {
		err = errors.Join(err, first.Signal(unix.SIGKILL))
	}
	return fmt.Errorf("the Docker daemon has gone, and the sandbox with it: %w", err)
}

// awaitExit returns how a container ended, or that nobody will say it.
func awaitExit(waiting client.ContainerWaitResult, drained <-chan struct{}) (container.WaitResponse, error) {
	var late <-chan time.Time
	for {
		select {
		case r := <-waiting.Result:
			return r, nil
		case err := <-waiting.Error:
			return container.WaitResponse{}, err
		case <-drained: // the stream ends before the wait is answered
			drained, late = nil, time.After(drainTimeout)
		case <-late:
			return container.WaitResponse{}, errors.New("its stream has ended")
		}
	}
}

// heldProcess is a process that can be signalled whatever becomes of its number.
type heldProcess struct {
	process.Handle

	ID  process.ID
	oom *cgroup.OOMWatch // nil where nobody can watch
}

// ranOut tells whether its memory was full.
func (h *heldProcess) ranOut() bool { return h != nil && h.oom != nil && h.oom.Happened() }

// firstOf is the container's first process, nil if it has ended already, which its exit tells.
// That it can't be found out is an error.
func firstOf(ctx context.Context, s service, container string) (*heldProcess, error) {
	pid, err := s.firstProcess(ctx, container)
	if err != nil || pid == 0 {
		return nil, err
	}
	id, err := process.Of(pid)
	var handle process.Handle
	if err == nil {
		handle, err = process.Open(id)
	}
	if errors.Is(err, process.ErrOver) {
		return nil, nil //nolint:nilnil // its exit tells the rest
	}
	if err != nil {
		return nil, fmt.Errorf("hold the container's process %d: %w", pid, err)
	}
	// Asked again, now that it is held: had it ended before, the number may be another's.
	if again, err := s.firstProcess(ctx, container); err != nil || again != pid {
		handle.Close()
		return nil, err
	}
	return &heldProcess{Handle: handle, ID: id, oom: watched(id)}, nil
}

// watched is the watch on a process's memory: the service may not hear that it is full, because
// it asks when the group is gone. Without a watch, what the service says is all there is, which
// the container's log says.
func watched(id process.ID) *cgroup.OOMWatch {
	group, err := cgroup.OfProcess(id.Pid)
	var watch *cgroup.OOMWatch
	if err == nil {
		watch, err = group.WatchOOM()
	}
	if err != nil && id.Is() {
		fmt.Fprintln(os.Stderr, "the container's memory can't be watched, so that an end for want of it may not be told as one:", err)
	}
	return watch
}

// firstProcess is the number of a container's first process; 0: it has ended, or been removed.
func (s service) firstProcess(ctx context.Context, container string) (int, error) {
	info, err := s.ContainerInspect(ctx, container, client.ContainerInspectOptions{})
	switch state := info.Container.State; {
	case isGone(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("find the container's process: %w", err)
	case state == nil:
		return 0, errors.New("the Docker daemon says nothing of the container's state")
	case !state.Running:
		return 0, nil
	case !process.Ordinary(state.Pid):
		return 0, fmt.Errorf("the Docker daemon says that the container's process is %d", state.Pid)
	default:
		return state.Pid, nil
	}
}

// carryBoth copies both ways until the container's side has ended, which it tells.
func carryBoth(wire net.Conn, stream client.ContainerAttachResult) <-chan struct{} {
	safego.Go(func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{stream.Conn}, struct{ io.Reader }{wire}, make([]byte, 128<<10))
		_ = stream.CloseWrite() // the keeper's end is closed: so is the guest's stdin
	})
	drained := make(chan struct{})
	safego.Go(func() {
		defer close(drained)
		_, _ = stdcopy.StdCopy(wire, &boundedLog{left: mostWords, to: os.Stderr}, stream.Reader)
	})
	return drained
}

// boundedLog drops what is too much, and what can't be written: that a log's disk is full is
// no reason for a sandbox to end.
type boundedLog struct {
	left int
	to   io.Writer
}

func (b *boundedLog) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	if n > 0 {
		_, _ = b.to.Write(p[:n])
	}
	return len(p), nil
}

// finishContainer writes down how the container ended and ends as it did.
func finishContainer(ctx context.Context, s service, dir string, t task, r container.WaitResponse, drained <-chan struct{}, first *heldProcess) error {
	select {
	case <-drained:
	case <-time.After(drainTimeout):
	}
	e := ended{Code: int(r.StatusCode)}
	if r.Error != nil { // the log's end is told with the exit
		fmt.Fprintln(os.Stderr, "the Docker daemon says of the container's end:", r.Error.Message)
	}
	e.OOM = e.Code == killed && ranOut(ctx, func(ctx context.Context) (bool, error) { return s.oomKilled(ctx, t.Container) }, first.ranOut)
	if err := writeJSON(filepath.Join(dir, endName), e); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if e.Code == killed {
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	os.Exit(e.Code)
	return nil
}

// killed is the code of what a SIGKILL ended.
const killed = 128 + int(unix.SIGKILL)

// Of a killed container the service may hear that its memory was full after it hears of the
// end. It is asked a few times.
const (
	oomTries = 10
	oomPause = 50 * time.Millisecond
)

// ranOut tells whether a killed container's memory was full: by what the service says, and
// by what was watched here, which needs no service.
func ranOut(ctx context.Context, said func(context.Context) (bool, error), watched func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for range oomTries {
		oom, err := said(ctx)
		if oom || watched() {
			return true
		}
		if err != nil { // it is being removed, or the service has gone
			return false
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(oomPause):
		}
	}
	return false
}

// oomKilled is what the service says of a container's end.
func (s service) oomKilled(ctx context.Context, container string) (bool, error) {
	info, err := s.ContainerInspect(ctx, container, client.ContainerInspectOptions{})
	if err != nil {
		return false, err
	}
	if info.Container.State == nil {
		return false, errors.New("it says nothing of its state")
	}
	return info.Container.State.OOMKilled, nil
}

func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func writeJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return atomicfile.ReplaceVolatile(path, data, 0o600)
}
