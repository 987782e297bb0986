package microvm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/hostproc"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
)

// handleState is what a Handle carries.
type handleState struct {
	Grouped bool `json:"grouped"` // there is a control group
}

// Instance is one machine. Signals reach its monitor: STOP and CONT have the machine stand
// still and go on, KILL ends it.
type Instance struct {
	*hostproc.Body

	engine *Engine
	id     string
	state  handleState
}

var _ engine.Instance = (*Instance)(nil)

func (e *Engine) instance(id string, st handleState) *Instance {
	return &Instance{Body: e.home.Body(id, logName, st.Grouped, st), engine: e, id: id, state: st}
}

// Destroy ends the machine and removes all that was made for it.
func (i *Instance) Destroy(ctx context.Context) error {
	i.Ends()
	return i.engine.destroy(ctx, i.id)
}

// Wait adds what the machine's kernel said at its end: the monitor itself ends with 0 for
// every machine that switched itself off.
func (i *Instance) Wait(ctx context.Context) (engine.Exit, error) {
	exit, err := i.Body.Wait(ctx)
	if err != nil || exit.Reason != "agent exited" {
		return exit, err
	}
	return ending(exit, []byte(exit.Words)), nil
}

// The words of the kernel when it ends.
var (
	agentEnded = regexp.MustCompile(`Kernel panic - not syncing: Attempted to kill init! exitcode=0x([0-9a-f]{8})`)
	panicked   = regexp.MustCompile(`Kernel panic - not syncing: (.*)`)
	broken     = regexp.MustCompile(`MicroVM stopped with an error: \w+`) // Firecracker's own words
	noMemory   = regexp.MustCompile(`(?i)panic.*(out of memory|deadlocked on memory)`)
)

// oomKill is what it says when it has killed a process for memory.
const oomKill = "Out of memory: Killed process"

// ending tells by the kernel's last words how a machine ended whose monitor ended by itself.
func ending(exit engine.Exit, words []byte) engine.Exit {
	switch found := agentEnded.FindSubmatch(words); {
	case noMemory.Match(words):
		return engine.Exit{Code: 137, OOM: true, Reason: "out of memory", Words: exit.Words}
	case found != nil:
		status, _ := strconv.ParseUint(string(found[1]), 16, 32) // the expression lets nothing else through
		exit.Code = int(status >> 8 & 0xff)
		if signal := int(status & 0x7f); signal != 0 {
			exit.Code, exit.Reason = 128+signal, "killed"
		}
	case panicked.Match(words):
		exit.Code, exit.Reason = 134, "the sandbox's kernel panicked"
	case exit.Code != 0 && broken.Match(words):
		exit.Reason = "the machine's monitor stopped with an error"
	}
	return exit
}

// Stats are the host's, with the processes that the machine's own kernel killed for memory.
func (i *Instance) Stats(ctx context.Context) (engine.Stats, error) {
	stats, err := i.Body.Stats(ctx)
	if err != nil {
		return stats, err
	}
	kills, err := killsIn(i.engine.bundle(i.id).logFile())
	stats.MemoryKills += kills
	return stats, err
}

// mostLog bounds what is read of a log.
const mostLog = 4 << 20

// killsIn counts the kernel's kills for memory in its log, to which no process of the sandbox
// can write.
func killsIn(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostLog))
	return int64(bytes.Count(data, []byte(oomKill))), err
}

// trackMonitor hands the monitor to the keeper.
func (e *Engine) trackMonitor(ctx context.Context, id string) error {
	processes, err := e.bundle(id).processes()
	if err != nil {
		return err
	}
	return e.keeper.Track(ctx, id, processes)
}

// Bounds of a start: emulated machines on a busy host take their time.
const bootWait = 3 * time.Minute

// awaitAgent waits until the agent answers, or the machine has ended.
func (e *Engine) awaitAgent(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, bootWait)
	defer cancel()
	_, err := e.keeper.Call(ctx, id, channel.Call{Kind: channel.CallPing})
	if err == nil {
		return nil
	}
	return fault.Wrap(fault.ErrUnavailable, errors.Join(context.Cause(ctx), err), "the machine of sandbox %s did not start%s", id, e.lastWords(id))
}

// lastWords are the end of an instance's log, in brackets; "" if there are none.
func (e *Engine) lastWords(id string) string {
	f, err := os.Open(e.bundle(id).logFile())
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 1 << 10
	if info, err := f.Stat(); err == nil && info.Size() > most {
		_, _ = f.Seek(-most, io.SeekEnd) // from the start, if that fails
	}
	text, _ := io.ReadAll(io.LimitReader(f, most))
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return ""
	}
	return " (it says: " + strconv.Quote(string(text)) + ")"
}

// launching is the stage that starts the monitor.
func (i *Instance) launching() (keeper.Launch, error) {
	b := i.engine.bundle(i.id)
	meta, err := json.Marshal(i.Handle())
	launch := keeper.Launch{
		ID: i.id, Dir: b.dir, Log: b.logFile(), Env: programEnvironment(), Meta: meta,
		Argv: slices.Concat(i.engine.cfg.Stage, []string{b.dir, doStart}),
	}
	if err != nil || !i.state.Grouped {
		return launch, err
	}
	group, err := i.engine.home.Groups().Open(i.id)
	if err != nil {
		return launch, err
	}
	// The stage joins by itself: the keeper would do that by a shell, which would be what is
	// behind the link that the stage is started by.
	launch.Argv = append(launch.Argv, group.Joins()...)
	return launch, nil
}
