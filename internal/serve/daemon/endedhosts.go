package daemon

import (
	"context"
	"log/slog"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/network/authority"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

const (
	tidyEvery = 24 * time.Hour
	// unusedFor is how long nobody has used the authority of a set of hosts that goes.
	unusedFor = 90 * 24 * time.Hour
)

// hostTidier removes the authorities of hosts that nothing can use any more.
type hostTidier struct {
	hosts     *authority.Hosts
	policies  *namedpolicy.Store
	sandboxes *sandbox.Manager
	log       *slog.Logger
}

// keepTidying tidies once a day. It returns what ends that and waits for it.
func (h hostTidier) keepTidying(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	safego.Go(func() {
		defer close(done)
		safego.Stay(ctx, func() {
			tick := time.NewTicker(tidyEvery)
			defer tick.Stop()
			for {
				h.tidyOnce(ctx)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	})
	return func() {
		cancel()
		<-done
	}
}

func (h hostTidier) tidyOnce(ctx context.Context) {
	spared, err := h.spared(ctx)
	if err == nil {
		_, err = h.hosts.Tidy(time.Now().Add(-unusedFor), spared)
	}
	if err != nil && ctx.Err() == nil {
		h.log.Warn("unused certificate authorities of hosts are kept for now", "err", err)
	}
}

// spared are the sets of hosts of all that is there: named policies, and sandboxes and
// snapshots, whose programs trust their authorities.
func (h hostTidier) spared(ctx context.Context) ([][]string, error) {
	named, err := h.policies.List()
	if err != nil {
		return nil, err
	}
	snapshots, err := h.sandboxes.Snapshots(ctx)
	if err != nil {
		return nil, err
	}
	digests := map[string]bool{}
	for _, s := range snapshots {
		digests[s.Of.PolicyDigest] = true
	}
	for _, s := range h.sandboxes.List() {
		digests[s.Info().PolicyDigest] = true
	}
	return hostsOf(named, digests, h.sandboxes.PolicyText)
}

// hostsOf are the sets of hosts of named policies, and of those whose digests have a text.
// An error where one can't be read: it may be what an authority is for.
func hostsOf(named []*namedpolicy.Named, digests map[string]bool, text func(digest string) ([]byte, error)) ([][]string, error) {
	var all [][]string
	for _, n := range named {
		all = append(all, n.Policy.Requests().Hosts())
	}
	for digest := range digests {
		if digest == "" {
			continue
		}
		document, err := text(digest)
		if err != nil {
			return nil, err
		}
		p, err := policy.Parse(digest, document)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Requests().Hosts())
	}
	return all, nil
}
