// Package backend is what the wires need of the daemon: /v1 and the E2B wire
// speak to it, the composition root joins it with the sandboxes' manager, and
// tests put something simple in its place.
//
// Clients speak one of several protocols, the wires. They are host users on the Unix socket, or have
// a token.
//
// Errors are faults: fault.ErrNotFound for an unknown id or one of another
// owner's, fault.ErrConflict for a sandbox in the wrong state, fault.ErrForbidden
// with the rule's sentence where the policy refuses, fault.ErrExhausted where a
// quota is used up, fault.ErrUnavailable where the host can't.
package backend

import (
	"context"
	"net"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/keeper"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// Sandboxes is the life of sandboxes and what is done in them.
// *sandbox.Manager is one.
type Sandboxes interface {
	Create(ctx context.Context, req sandbox.Request) (*sandbox.Sandbox, error)
	Get(id string) (*sandbox.Sandbox, error)
	List() []*sandbox.Sandbox
	Destroy(ctx context.Context, id string) error

	// SetLifetime replaces when the sandbox ends, from now on.
	SetLifetime(ctx context.Context, id string, l sandbox.Lifetime) error
	// Touch tells that a client uses the sandbox.
	Touch(id string)
	// Pause writes the sandbox to disk and frees its memory. It is a
	// fault.ErrConflict for one that is paused already, or being destroyed.
	Pause(ctx context.Context, id string) error
	// PauseFiles is Pause, and keeps the files alone: what runs ends, and a resume starts
	// the sandbox anew. A fault.ErrConflict, too, for one that is on disk with its memory.
	PauseFiles(ctx context.Context, id string) error
	// Resume lets a paused sandbox go on; true if it was paused. A sandbox that its policy and
	// advisories would refuse today is a fault.ErrForbidden, and stays paused. A sandbox that is
	// frozen because it waits for a person is a fault.ErrConflict that names the request.
	Resume(ctx context.Context, id string) (bool, error)
	// ResumeFiles is Resume, and starts the sandbox anew on its files: what its memory
	// had is lost. One that runs is left alone.
	ResumeFiles(ctx context.Context, id string) (bool, error)
	// Events returns a channel of what happens from after the event with the
	// number on; it is closed when ctx ends, or when the reader is too slow, who
	// may ask again from the last one that it has.
	Events(ctx context.Context, after int64) (<-chan sandbox.Event, error)
	Usage(ctx context.Context, id string) (sandbox.Usage, error)

	// PolicyPut tells that the document of a source was replaced; see
	// sandbox.Manager.PolicyPut.
	PolicyPut(ctx context.Context, p *policy.Policy, source string, text []byte, narrow bool) (sandbox.Applied, error)

	Snapshot(ctx context.Context, id, name string, contents engine.Contents) (sandbox.Snapshot, error)
	Snapshots(ctx context.Context) ([]sandbox.Snapshot, error)
	// RemoveSnapshot removes by id or name; owner "" is the Unix socket's.
	RemoveSnapshot(ctx context.Context, owner, ref string) error
	// Fork makes count running copies; each is a sandbox or an error.
	Fork(ctx context.Context, id string, count int, l sandbox.Lifetime) ([]Forked, error)

	// Start starts a command: judged and recorded first.
	Start(ctx context.Context, id string, c sandbox.Command) (keeper.Command, error)
	Commands(ctx context.Context, id string) ([]keeper.Command, error)
	// Attach returns a connection with a command's frames: FrameStarted first, then
	// output from the offset on (keeper.FromNow: only what comes), FrameExit last.
	Attach(ctx context.Context, id, command string, offset int64) (net.Conn, error)
	// Written returns what is kept of a command's output, with its times.
	Written(ctx context.Context, id, command string) (keeper.Output, error)
	// Send passes one frame (input, a signal, a resize) to a running command.
	Send(ctx context.Context, id, command string, kind channel.FrameType, payload []byte) error
	// File does an operation on the sandbox's files that is one reply.
	File(ctx context.Context, id string, f channel.File) (channel.FileInfo, error)
	// OpenFile begins one of the others (list, read, write, watch): the stream
	// after its first reply, whose FileInfo comes with it. Close ends it.
	OpenFile(ctx context.Context, id string, f channel.File) (*channel.Conn, channel.FileInfo, error)
	// Dial connects to a port inside, which the policy must publish.
	Dial(ctx context.Context, id string, port int) (net.Conn, error)
	// DialHere dials for the host's own users: any port where the policy says
	// nothing of ports.
	DialHere(ctx context.Context, id string, port int) (net.Conn, error)
}

// Forked is one copy of a fork.
type Forked = sandbox.Forked

// Idle is how long a stream of a wire may be silent before it is told that it
// is still there.
const Idle = 25 * time.Second
