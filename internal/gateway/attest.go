package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/errand"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

const (
	timesAtOnce = 8                // releases that are looked up at a time for a page
	timesWait   = 20 * time.Second // for all of a page's
)

// attestation is what the log says of a release. It never changes, so it is
// kept on disk, as JSON.
type attestation struct {
	ecosystem.Attested
	First time.Time // when this installation first saw it
}

// attest gives what the source's log, which it must have, says of a release.
func (g *Gateway) attest(ctx context.Context, s *source, project, version string) (attestation, error) {
	l := s.log
	if why := l.condemned.Load(); why != nil {
		return attestation{}, fault.Invalid("%s", *why)
	}
	key := project + "@" + version
	if a, ok := l.recent.get(key); ok {
		return a, nil
	}
	if data, err := l.attested.Get(key); err == nil {
		var a attestation
		if json.Unmarshal(data, &a) == nil {
			l.recent.put(key, a, attestedSize(key, a))
			return a, nil
		}
	}
	return flight(ctx, g, "attest "+s.index+" "+key, func(ctx context.Context) (attestation, error) {
		a, err := g.lookUp(ctx, l, project, version)
		if err != nil {
			return attestation{}, err
		}
		l.recent.put(key, a, attestedSize(key, a))
		data, err := json.Marshal(a)
		if err == nil {
			err = l.attested.Put(key, data)
		}
		if err != nil {
			g.log.Warn("what the transparency log says of a release could not be kept", "release", key, "error", err)
		}
		return a, nil
	})
}

func attestedSize(key string, a attestation) int64 {
	return int64(200 + len(key) + len(a.File) + len(a.Attachment))
}

// lookUp asks the log itself. A log that was seen lying is asked no more.
func (g *Gateway) lookUp(ctx context.Context, l *logbook, project, version string) (attestation, error) {
	said, err := l.witness.Attest(ctx, l, project, version)
	switch {
	case errors.Is(err, fault.ErrInvalid):
		why := "the upstream's transparency log lies or forks (" + sentence(err) + "); nothing that it vouches for is served until an operator has looked and the gateway is started anew"
		l.condemned.CompareAndSwap(nil, &why)
		g.log.Error("a transparency log can't be believed", "log", l.base, "error", err)
		return attestation{}, fault.Wrap(fault.ErrInvalid, err, "%s", why)
	case errors.Is(err, fault.ErrNotFound):
		return attestation{}, fault.Wrap(fault.ErrNotFound, err, "the upstream's transparency log does not have this release")
	case err != nil:
		return attestation{}, err
	}
	l.reached(said.Size)
	now := g.seen().Truncate(time.Second)
	if err := l.observe(said.Size, now); err != nil {
		g.log.Warn("the size of a transparency log could not be kept", "log", l.base, "error", err)
	}
	return attestation{Attested: said, First: now}, nil
}

// vouched is attest for what is only had if the log has it: that it has not is
// then no different from bytes that can't be verified.
func (g *Gateway) vouched(ctx context.Context, s *source, project, version string) (attestation, error) {
	a, err := g.attest(ctx, s, project, version)
	if errors.Is(err, fault.ErrNotFound) {
		return attestation{}, fault.Invalid("the upstream's transparency log does not have this release, so it can't be verified")
	}
	return a, err
}

// times finds out when releases were published, by the positions of their
// records in the source's log. What can't be found out in time is left out.
func (g *Gateway) times(ctx context.Context, s *source, project string, versions []string) map[string]time.Time {
	found := map[string]time.Time{}
	if s.log == nil {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, timesWait)
	defer cancel()
	var mu sync.Mutex
	var askers sync.WaitGroup
	next := make(chan string)
	for range min(timesAtOnce, len(versions)) {
		errand.In(&askers, func() {
			for version := range next {
				var a attestation
				err := errand.Try(func() (err error) {
					a, err = g.attest(ctx, s, project, version)
					return err
				})
				if err != nil {
					continue // its time stays unknown, and the policy says what that means
				}
				if t := s.log.timeOf(a.Position); !t.IsZero() {
					mu.Lock()
					found[version] = t
					mu.Unlock()
				}
			}
		})
	}
feed:
	for _, version := range versions {
		select {
		case next <- version:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	askers.Wait()
	return found
}
