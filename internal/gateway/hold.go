package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/door"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// maxRounds is how often a file is asked for again whose approval ends just when
// it is to be served.
const maxRounds = 3

// serveRecorded has the serving recorded and sends. What waits for a person is
// waited for first, as long as the client is there; but once it may be served the
// record has to be whole, whether or not the client still is.
func (g *Gateway) serveRecorded(a *asked, v *verified) {
	ask := a.ask()
	ask.Paths = a.paths()
	ask.Size, ask.SHA256 = v.Size(), strings.TrimPrefix(v.Digest(), "sha256:")
	var answer door.Answer
	for range maxRounds {
		if a.waits && !g.awaited(a, ask) {
			return
		}
		serve := ask
		serve.Serve, serve.Part = true, a.part(v.Blob)
		var err error
		answer, err = g.door.Artifact(context.WithoutCancel(a.r.Context()), serve)
		a.waits = answer.Decision.Effect == policy.Hold
		switch {
		case err != nil:
			g.refuseUndecided(a, err)
			return
		case answer.Decision.Allowed():
			g.sendRecorded(a, v.Blob, answer)
			return
		case !a.waits:
			a.refuseAnswer(answer)
			return
		}
	}
	a.refuseAnswer(answer)
}

// awaited asks for a file that waits until it waits no more, and refuses what is
// then not allowed.
func (g *Gateway) awaited(a *asked, ask door.ArtifactAsk) bool {
	ctx := a.r.Context()
	ask.Await, ask.Evidence = true, a.evidence(ctx, g)
	stop := a.keepPatient(g.cfg.Limits.Interim)
	answer, err := g.door.Artifact(ctx, ask)
	stop()
	a.waits = answer.Decision.Effect == policy.Hold
	switch {
	case ctx.Err() != nil: // nobody is there to be answered; the request stays
	case errors.Is(err, door.ErrGone):
		// The daemon ended while a person was waited for. An answer of ours would be
		// final for the client; a broken connection makes it ask again, and that joins
		// the request.
		panic(http.ErrAbortHandler)
	case err != nil:
		g.refuseUndecided(a, err)
	case !answer.Decision.Allowed():
		a.refuseAnswer(answer)
	default:
		return true
	}
	return false
}

// announce tells the door that the metadata of what waits is read: its file will
// be wanted.
func (g *Gateway) announce(a *asked) bool {
	ask := a.ask()
	ask.Sidecar, ask.Evidence = true, a.evidence(a.r.Context(), g)
	answer, err := g.door.Artifact(a.r.Context(), ask)
	switch {
	case err != nil:
		g.refuseUndecided(a, err)
	case !answer.Decision.Shown():
		a.refuseAnswer(answer)
	default:
		return true
	}
	return false
}

// stands tells whether what is being sent may still be had: a person may take an
// approval back, a policy be narrowed, an advisory imported.
func (g *Gateway) stands(a *asked) bool {
	answer, err := g.door.Artifact(context.WithoutCancel(a.r.Context()), a.ask())
	return err == nil && answer.Decision.Allowed()
}

// So much of a file that a person approved, or that the policy allows, is sent
// between two questions whether it may still be had: so much can still go out
// after a denial.
const (
	approvedBytes = 256 << 10
	allowedBytes  = 1 << 20
)

var errNoLonger = errors.New("the file may no longer be had")

// standing reads a file, as long as it may be had.
type standing struct {
	io.ReadSeeker
	check func() bool
	step  int // bytes between two questions
	left  int // of them until the next
	ended bool
}

// Read implements io.Reader.
func (s *standing) Read(p []byte) (int, error) {
	if s.left <= 0 && !s.ended {
		s.ended = !s.check()
		s.left = s.step
	}
	if s.ended {
		return 0, errNoLonger
	}
	n, err := s.ReadSeeker.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}
