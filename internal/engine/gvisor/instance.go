package gvisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/keeper"
)

// Instance is one sandbox under gVisor.
type Instance struct {
	engine *Engine
	id     string
	state  state
	// destroyed is set before anything is killed, so that Wait can tell our
	// own kill from another's.
	destroyed atomic.Bool
}

var _ engine.Instance = (*Instance)(nil)

func (e *Engine) instance(id string, st state) *Instance {
	return &Instance{engine: e, id: id, state: st}
}

// Handle is what Open takes.
func (i *Instance) Handle() engine.Handle {
	data, err := json.Marshal(i.state)
	if err != nil {
		data = []byte("{}") // A struct of numbers can't fail to encode.
	}
	return engine.Handle{Engine: Name, ID: i.id, State: data}
}

// Signal reaches the sentry and the gofer, and with them every guest process:
// STOP and CONT freeze and thaw, KILL ends.
func (i *Instance) Signal(ctx context.Context, signal int) error {
	return i.engine.keeper.Signal(ctx, i.id, signal)
}

// Wait returns when the sentry has ended, unless for a freeze.
func (i *Instance) Wait(ctx context.Context) (engine.Exit, error) {
	exit, err := i.engine.keeper.Wait(ctx, i.id)
	if errors.Is(err, fault.ErrNotFound) && i.destroyed.Load() {
		return engine.Exit{Code: 128 + int(unix.SIGKILL), Reason: "destroyed"}, nil
	}
	if err != nil {
		return engine.Exit{}, err
	}
	judged := i.judge(exit)
	if judged.Reason != "destroyed" {
		judged.Words = lastWords(bundle{dir: i.engine.dir(i.id)}.log())
	}
	return judged, nil
}

// mostWords bounds the end of a log that is told.
const mostWords = 2 << 10

func lastWords(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "" // it never wrote, or is being taken away
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > mostWords {
		_, _ = f.Seek(-mostWords, io.SeekEnd) // from the start, if that fails
	}
	text, _ := io.ReadAll(io.LimitReader(f, mostWords))
	return strings.ToValidUTF8(string(text), "?")
}

// judge tells why the sentry ended. Its exit code is PID 1's; the kernel's
// kill for memory shows in the group's counter.
func (i *Instance) judge(exit keeper.ProcessExit) engine.Exit {
	code := exit.Code
	if exit.Signal != 0 {
		code = 128 + exit.Signal
	}
	switch {
	case i.destroyed.Load():
		return engine.Exit{Code: code, Reason: "destroyed"}
	case code != 0 && i.outOfMemory():
		return engine.Exit{Code: code, OOM: true, Reason: "out of memory"}
	case exit.Signal != 0:
		return engine.Exit{Code: code, Reason: "killed"}
	default:
		return engine.Exit{Code: code, Reason: "agent exited"}
	}
}

func (i *Instance) outOfMemory() bool {
	if !i.state.Grouped {
		return false
	}
	group, err := i.engine.groups().Open(i.id)
	if err != nil {
		return false
	}
	kills, err := group.OOMKills()
	return err == nil && kills > 0
}

// Stats counts the host's side: the sentry's memory is the sandbox's.
func (i *Instance) Stats(context.Context) (engine.Stats, error) {
	if !i.state.Grouped {
		return engine.Stats{}, fault.New(fault.ErrUnavailable, "what sandbox %s uses is not counted, because it has no control group", i.id)
	}
	group, err := i.engine.groups().Open(i.id)
	if err != nil {
		return engine.Stats{}, err
	}
	s, err := group.Stats()
	if err != nil {
		return engine.Stats{}, fmt.Errorf("stats of sandbox %s: %w", i.id, err)
	}
	kills, err := group.OOMKills()
	if err != nil {
		return engine.Stats{}, fmt.Errorf("stats of sandbox %s: %w", i.id, err)
	}
	throttled, err := group.Throttled()
	if err != nil {
		return engine.Stats{}, fmt.Errorf("stats of sandbox %s: %w", i.id, err)
	}
	return engine.Stats{MemoryBytes: s.MemoryBytes, CPUNanos: s.CPUNanos, Pids: s.Pids, MemoryKills: kills, CPUThrottled: throttled}, nil
}

// Destroy ends the sandbox and removes all that was made for it.
func (i *Instance) Destroy(ctx context.Context) error {
	i.destroyed.Store(true)
	return i.engine.destroy(ctx, i.id)
}
