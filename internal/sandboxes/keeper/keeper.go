// Package keeper is the parent of every sandbox process. It owns each
// sandbox's channel (the multiplexer, the output rings, the exit codes) and
// survives the daemon: the daemon can be killed or upgraded and no sandbox
// notices. Payloads are opaque to it. Small and boring on purpose.
//
// The keeper knows a sandbox as an id, a channel and the pids behind it. The daemon's own data about
// a sandbox (meta) are kept and handed back verbatim. Streams that a guest opens go to the socket of
// the gateway (the uplink), with the sandbox's identity in front. A frozen sandbox has no processes
// (or stopped ones) and lives on in its channel: its session is in the keeper's memory, so the end of
// the keeper is the end of what is frozen.
//
// Protocol: a Unix socket, one connection a request. The client sends one
// channel frame FrameOpen with a Request, the keeper answers with FrameReply
// frames, each a Response (see Verb for what else may go with them). An attach
// connection then carries frames both ways until either side closes.
package keeper

import (
	"encoding/json"
	"math"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/process"
)

// Launch asks for an engine's start command to be run as the keeper's child, with the channel's guest
// end as its stdin and stdout.
type Launch struct {
	ID   string   `json:"id"`
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	Log  string   `json:"log"` // file for stderr, appended
	// Attached: the process is the sandbox itself; the keeper tracks its pid.
	// Otherwise it is a starter that must exit with 0, and Track names the pids.
	Attached bool            `json:"attached,omitempty"`
	Meta     json.RawMessage `json:"meta"`
	// CgroupProcs lists files into which the child's pid is written before exec.
	CgroupProcs []string `json:"cgroup_procs,omitempty"`
	// Reset: what is started is a copy of another sandbox's guest. Its agent is
	// told to start the channel anew before the launch returns; the commands that
	// run in it are then to be adopted.
	Reset bool `json:"reset,omitempty"`
	// Fresh, of a thaw: what is started is a new guest, which knows nothing of what was
	// before. It takes over the sandbox's id, meta and ended commands.
	Fresh bool `json:"fresh,omitempty"` // FeatureFresh
}

// Sandbox is the keeper's view of one sandbox.
type Sandbox struct {
	ID   string          `json:"id"`
	Meta json.RawMessage `json:"meta"`
	Pids []int           `json:"pids"` // tracked and alive
	// Processes are those of Pids with their starts, in the same order; none of an older
	// keeper. All that is done to one by its number goes by these.
	Processes []process.ID `json:"processes,omitempty"`
	Alive     bool         `json:"alive"`
	Exit      *ProcessExit `json:"exit,omitempty"` // of the first tracked pid
	// Frozen: its processes were ended by a freeze, or stopped, and its channel
	// waits for a thaw. It is alive and has no Exit.
	Frozen bool `json:"frozen,omitempty"`
	// Moving: between running and frozen. Freeze and Thaw wait for the end of that.
	Moving   bool      `json:"moving,omitempty"`
	Started  time.Time `json:"started"`
	Commands []Command `json:"commands,omitempty"`
}

// ProcessExit is a host process's wait status.
type ProcessExit struct {
	Code   int `json:"code"`
	Signal int `json:"signal"` // 0: exited
}

// Command is one exec on a sandbox's channel.
type Command struct {
	ID      string        `json:"id"`
	Argv    []string      `json:"argv"`
	PID     int           `json:"pid,omitempty"` // inside, as the guest says; 0: it has not started
	Started time.Time     `json:"started"`
	Ended   time.Time     `json:"ended,omitzero"`
	Exit    *channel.Exit `json:"exit,omitempty"` // nil while it runs
	Offset  int64         `json:"offset"`         // output bytes so far, stdout and stderr together
	// Terminal tells that it was started with one.
	Terminal bool `json:"terminal,omitempty"`
	// TimeoutMS is what it was started with, in milliseconds; 0: none, or a keeper that does not tell. No
	// request has it.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
}

// ExecOptions bound what the keeper keeps of a command.
type ExecOptions struct {
	RingBytes int64 `json:"ring_bytes"` // kept for replay; 0: 1 MiB
	// CapBytes per output stream, past which output is counted but not kept
	// (Exit.Truncated). 0: no cap; then an attached reader that does not read
	// holds the guest back, and without a reader the ring drops the oldest.
	CapBytes int64 `json:"cap_bytes"`
	// AwaitReader: no output is dropped before the first Attach; the guest is
	// held back instead, for at most ReaderTimeout.
	AwaitReader bool `json:"await_reader,omitempty"`
}

// Tail is the Attach offset of who wants only the exit: no output is sent and
// none is held back.
const Tail = math.MaxInt64

// FromNow is the Attach offset of who wants only the output that is still to come.
const FromNow = math.MaxInt64 - 1

// ReaderTimeout is how long a command with AwaitReader waits for its reader.
const ReaderTimeout = 30 * time.Second

// StreamIdentity precedes each guest-opened stream on the uplink as one
// FrameOpen frame; the guest's own FrameOpen follows verbatim, then the
// stream's bytes both ways.
//
// With Refused or Settle nothing follows, and no stream of a guest is behind it. With Refused the keeper tells that it
// has refused so many: a channel.Reply says that this was heard, and a second one whether it is on record. With Settle the
// daemon asks that all that the gateway counts of a sandbox which has ended be put on record: a channel.Reply says that
// it is.
type StreamIdentity struct {
	Sandbox string `json:"sandbox"`
	Refused int    `json:"refused,omitempty"`
	Settle  bool   `json:"settle,omitempty"`
}
