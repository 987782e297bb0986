package door

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// class is a kind of call by what ends it. Calls of one class never wait for those of another.
type class byte

const (
	classQuestion class = iota // the daemon answers by itself
	classRecord                // it tells what has happened, so that it is on record
	classSecret                // the source of a secret may take its time
	classWait                  // a person, a tool or a build may take days
	classStanding              // whether connections may go on: without an answer all are ended
)

// classOf of a call.
func (m method) classOf() class {
	switch m {
	case callStanding:
		return classStanding
	case callSecrets:
		return classSecret
	case callAwait, callAwaitHost, callAwaitPush, callBuild, callCallTool:
		return classWait
	case callFailed, callAborted, callSent, callDisconnected, callHostRefused, callRequested, callLeaked, callDeclined, callFoundInRequest:
		return classRecord
	case callIndex, callJudge, callName, callEdges, callRefusals, callTrust, callOwner, callEdgesOfIndex, callPropose, callShow, callReach,
		callOutline, callPreview, callWalk, callServe, callConnect, callReached, callStopReaching, callTools, callLeaf, callRequest,
		callCredentials, callScans, callReadBuilt, callAsking, callResolving, callLent:
	}
	return classQuestion
}

// outlastsClient tells whether a call goes on although its client has gone. Its answer may be a refusal or
// tell of one, and a guest could choose what is on record by being gone when it is written. What
// may take as long as somebody likes ends with its client, once it is judged: see Lasting and missed.
func (c class) outlastsClient() bool { return c == classQuestion || c == classRecord }

// callLimits are how many calls of a class are under way, and wait for that. Those that are sure
// bound what a sandbox may be kept from by others: it has them although all others are taken.
func (c class) callLimits() fairqueue.Limits {
	switch c {
	case classStanding: // a sandbox is looked after once at a time
		return fairqueue.Limits{Sure: 1, Most: mostStanding}
	case classSecret:
		return fairqueue.Limits{All: 256, Each: 16, Sure: 8, Most: mostOfClass, Line: 512}
	case classWait: // the controller keeps fewer waiting (Limits.AllWaiting), and answers the rest at once
		return fairqueue.Limits{All: 1_536, Each: 256, Sure: 16, Most: mostWaiting, Line: 512}
	case classRecord: // nothing is thrown away: who tells has a bound of its own
		return fairqueue.Limits{All: 256, Each: 32, Sure: 8, Most: mostOfClass}
	case classQuestion:
	}
	return fairqueue.Limits{All: 256, Each: 64, Sure: 8, Most: mostOfClass, Line: 512}
}

const (
	mostOfClass  = 1_024
	mostWaiting  = 2_048
	mostStanding = 2_048 // sandboxes
	// maxStreams are all calls that there may be at a time.
	maxStreams = 3*mostOfClass + mostWaiting + mostStanding
)

// shares divide the calls under way between the sandboxes.
type shares struct {
	classes map[class]*fairqueue.Shares
	// Large messages, in bytes, by sandbox: those that a person may keep under way, and others.
	held, passing rooms
}

func newShares() *shares {
	s := &shares{classes: map[class]*fairqueue.Shares{}}
	for _, c := range []class{classQuestion, classRecord, classSecret, classWait, classStanding} {
		s.classes[c] = fairqueue.New(c.callLimits())
	}
	return s
}

// takeTurn waits for a sandbox's turn to make a call, which the caller gives back by leave.
func (s *shares) takeTurn(ctx context.Context, sandbox string, c class) (leave func(), err error) {
	shares := s.classes[c]
	_, leave, err = shares.Take(fairqueue.For(ctx, sandbox))
	if errors.Is(err, fairqueue.ErrCrowded) {
		l := shares.Limits()
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the sandbox has as much under way as it may (%d questions of a kind to the daemon, and %d that wait for them); let some of its requests end first", l.Each, l.Line)
	}
	return leave, err
}

// The bytes of large messages that a sandbox has under way: while a person answers, and others.
const heldBytes, passingBytes = 32 << 20, 64 << 20

// makeRoom waits until a sandbox may have a message of so many bytes under way. release gives
// the room back.
func (s *shares) makeRoom(ctx context.Context, sandbox string, c class, bytes int) (release func(), err error) {
	if bytes <= smallMessage {
		return func() {}, nil
	}
	if c != classWait {
		return s.passing.takeBytes(ctx, sandbox, int64(bytes), passingBytes)
	}
	within, cancel := context.WithTimeout(ctx, messageTime)
	defer cancel()
	release, err = s.held.takeBytes(within, sandbox, int64(bytes), heldBytes)
	if err != nil && ctx.Err() == nil {
		return nil, fault.New(fault.ErrUnavailable, "the sandbox has as many large files waiting as it may (their lists have %d MiB); have somebody answer for some of them first", heldBytes>>20)
	}
	return release, err
}

// rooms count bytes by sandbox. The zero value has counted none.
type rooms struct {
	mu sync.Mutex // guards by
	by map[string]*room
}

// room is one sandbox's.
type room struct {
	bytes *semaphore.Weighted
	users int // that have some or wait for some; guarded by rooms.mu
}

// takeBytes waits for bytes of a sandbox's room, which has most in all. More than that
// takes it whole.
func (r *rooms) takeBytes(ctx context.Context, sandbox string, bytes, most int64) (release func(), err error) {
	r.mu.Lock()
	if r.by == nil {
		r.by = map[string]*room{}
	}
	one := r.by[sandbox]
	if one == nil {
		one = &room{bytes: semaphore.NewWeighted(most)}
		r.by[sandbox] = one
	}
	one.users++
	r.mu.Unlock()
	leave := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if one.users--; one.users == 0 {
			delete(r.by, sandbox)
		}
	}
	bytes = min(bytes, most)
	if err := one.bytes.Acquire(ctx, bytes); err != nil {
		leave()
		return nil, err
	}
	return func() {
		one.bytes.Release(bytes)
		leave()
	}, nil
}
