package hostproc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// Body is all of one instance that does not depend on the engine. Safe for concurrent use.
type Body struct {
	home    *Home
	id      string
	log     string // in its folder
	grouped bool   // there is a control group
	state   any    // what its handle carries
	// destroyed is set before anything is killed, so that Wait can tell our own kill from
	// another's.
	destroyed atomic.Bool
}

// Body is an instance whose handle carries state, whose programs write to the file log in
// its folder, and which has a control group if grouped says so.
func (h *Home) Body(id, log string, grouped bool, state any) *Body {
	return &Body{home: h, id: id, log: log, grouped: grouped, state: state}
}

// Handle is what Open takes.
func (b *Body) Handle() engine.Handle {
	data, err := json.Marshal(b.state)
	if err != nil {
		data = []byte("{}") // engines' states are plain structs, which can't fail to encode
	}
	return engine.Handle{Engine: b.home.engine, ID: b.id, State: data}
}

// Signal reaches the processes that the keeper tracks.
func (b *Body) Signal(ctx context.Context, signal int) error {
	return b.home.keeper.Signal(ctx, b.id, signal)
}

// Ends has Wait say that the end is ours.
func (b *Body) Ends() { b.destroyed.Store(true) }

// Wait returns when the first of the processes has ended, unless for a freeze.
func (b *Body) Wait(ctx context.Context) (engine.Exit, error) {
	exit, err := b.home.keeper.Wait(ctx, b.id)
	if errors.Is(err, fault.ErrNotFound) && b.destroyed.Load() {
		return engine.Exit{Code: 128 + int(unix.SIGKILL), Reason: "destroyed"}, nil
	}
	if err != nil {
		return engine.Exit{}, err
	}
	judged := b.judgeExit(exit)
	if judged.Reason != "destroyed" {
		judged.Words = b.Words()
	}
	return judged, nil
}

// Words are the end of what its programs wrote.
func (b *Body) Words() string { return lastWords(filepath.Join(b.home.Path(b.id), b.log)) }

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

// judgeExit tells why the process ended. The kernel's kill for memory shows in the group's
// counter.
func (b *Body) judgeExit(exit keeper.ProcessExit) engine.Exit {
	code := exit.Code
	if exit.Signal != 0 {
		code = 128 + exit.Signal
	}
	switch {
	case b.destroyed.Load():
		return engine.Exit{Code: code, Reason: "destroyed"}
	case code != 0 && b.outOfMemory():
		return engine.Exit{Code: code, OOM: true, Reason: "out of memory"}
	case exit.Signal != 0:
		return engine.Exit{Code: code, Reason: "killed"}
	default:
		return engine.Exit{Code: code, Reason: "agent exited"}
	}
}

func (b *Body) outOfMemory() bool {
	if !b.grouped {
		return false
	}
	group, err := b.home.groups().Open(b.id)
	if err != nil {
		return false
	}
	kills, err := group.OOMKills()
	return err == nil && kills > 0
}

// Stats counts the host's side.
func (b *Body) Stats(context.Context) (engine.Stats, error) {
	if !b.grouped {
		return engine.Stats{}, fault.New(fault.ErrUnavailable, "what sandbox %s uses is not counted, because it has no control group", b.id)
	}
	group, err := b.home.groups().Open(b.id)
	if err != nil {
		return engine.Stats{}, err
	}
	s, err := group.Stats()
	if err != nil {
		return engine.Stats{}, fmt.Errorf("stats of sandbox %s: %w", b.id, err)
	}
	kills, err := group.OOMKills()
	if err != nil {
		return engine.Stats{}, fmt.Errorf("stats of sandbox %s: %w", b.id, err)
	}
	throttled, err := group.Throttled()
	if err != nil {
		return engine.Stats{}, fmt.Errorf("stats of sandbox %s: %w", b.id, err)
	}
	return engine.Stats{MemoryBytes: s.MemoryBytes, CPUNanos: s.CPUNanos, Pids: s.Pids, MemoryKills: kills, CPUThrottled: throttled}, nil
}
