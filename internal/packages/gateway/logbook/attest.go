package logbook

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

const (
	timesAtOnce = 8                // releases that are looked up at a time for a page
	timesWait   = 20 * time.Second // for all of a page's
)

// Attest gives what the log says of a release.
func (b *Book) Attest(ctx context.Context, project, version string) (Attestation, error) {
	return b.attest(ctx, b.looking(project, version), project, version)
}

func (b *Book) attest(ctx context.Context, by *looking, project, version string) (Attestation, error) {
	if why := b.condemned.Load(); why != nil {
		return Attestation{}, fault.Invalid("%s", *why)
	}
	return b.attested.Get(ctx, loggedRelease{project, version}, func(ctx context.Context) (Attestation, error) {
		return b.lookUp(ctx, by, project, version)
	})
}

// lookUp asks the log itself. A log that was seen lying is asked no more.
func (b *Book) lookUp(ctx context.Context, by *looking, project, version string) (Attestation, error) {
	said, err := b.cfg.Witness.Attest(ctx, by, project, version)
	switch {
	case errors.Is(err, fault.ErrInvalid):
		why := "the upstream's transparency log lies or forks (" + errorSentence(err) + "); nothing that it vouches for is served until an operator has looked and the gateway is started anew"
		b.condemned.CompareAndSwap(nil, &why)
		b.cfg.Log.Error("a transparency log can't be believed", "log", b.base, "error", err)
		return Attestation{}, fault.Wrap(fault.ErrInvalid, err, "%s", why)
	case errors.Is(err, fault.ErrNotFound):
		return Attestation{}, fault.Wrap(fault.ErrNotFound, err, "the upstream's transparency log does not have this release")
	case err != nil:
		return Attestation{}, err
	}
	b.reached(said.Size)
	now := b.cfg.Now().Truncate(time.Second)
	if err := b.observe(said.Size, now); err != nil {
		b.cfg.Log.Warn("the size of a transparency log could not be kept", "log", b.base, "error", err)
	}
	return Attestation{Attested: said, First: now}, nil
}

// Vouched is Attest for what is only had if the log has it: that it has not is
// then no different from bytes that can't be verified.
func (b *Book) Vouched(ctx context.Context, project, version string) (Attestation, error) {
	a, err := b.Attest(ctx, project, version)
	if errors.Is(err, fault.ErrNotFound) {
		return Attestation{}, fault.Invalid("the upstream's transparency log does not have this release, so it can't be verified")
	}
	return a, err
}

// Times finds out when releases were published, by the positions of their
// records in the log. A fact that can't be found out in time is left out.
func (b *Book) Times(ctx context.Context, project string, versions []string) map[string]time.Time {
	found, by := map[string]time.Time{}, b.looking(project, "")
	ctx, cancel := context.WithTimeout(ctx, timesWait)
	defer cancel()
	var mu sync.Mutex
	var askers sync.WaitGroup
	next := make(chan string)
	for range min(timesAtOnce, len(versions)) {
		safego.In(&askers, func() {
			for version := range next {
				var a Attestation
				err := safego.Try(func() (err error) {
					a, err = b.attest(ctx, by, project, version)
					return err
				})
				if err != nil {
					continue // its time stays unknown, and the policy says what that means
				}
				if t := b.TimeOf(a.Position); !t.IsZero() {
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
