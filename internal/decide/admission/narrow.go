package admission

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// detailNarrowing has a policy.Narrowing as JSON. The log is where a narrowing is
// kept: a daemon that takes a sandbox over reads it there, and a copy has it from
// the records of its source.
const detailNarrowing = "narrowing"

// narrowed is what a sandbox's client has given up of the network.
type narrowed struct {
	changing sync.Mutex // held over the record of a change and the change

	mu    sync.RWMutex // guards value
	value policy.Narrowing
}

func (n *narrowed) getNarrowing() policy.Narrowing {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.value
}

func (n *narrowed) setNarrowing(value policy.Narrowing) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.value = value
}

// replayRecord takes a record of the sandbox, or of one that it is a copy of. A document that can't be read closes everything.
func (n *narrowed) replayRecord(r audit.Record) {
	if r.Outcome != audit.Started && r.Outcome != audit.Narrowed {
		return
	}
	text, named := r.Detail[detailNarrowing]
	if !named {
		return
	}
	var value policy.Narrowing
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		value = policy.Narrowing{Deny: []string{policy.Everything}}
	}
	n.setNarrowing(value)
}

func narrowingText(n policy.Narrowing) string {
	text, err := json.Marshal(n)
	if err != nil {
		return "" // lists of text have none; read back, it closes everything
	}
	return string(text)
}

// Narrow replaces what a sandbox's client gives up of the network, and records
// that first. A host that the policy does not open stays closed in any case.
func (c *Controller) Narrow(ctx context.Context, sandbox string, n policy.Narrowing) error {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return err
	}
	t.narrowing.changing.Lock()
	defer t.narrowing.changing.Unlock()
	if t.narrowing.getNarrowing().Equal(n) {
		return nil
	}
	_, err = t.book.Append(ctx, audit.Record{
		Kind: audit.KindSandbox, Outcome: audit.Narrowed, User: t.run.User, Detail: map[string]string{detailNarrowing: narrowingText(n)},
		Reason: "the sandbox's client changed what it gives up of the network",
	})
	if err != nil {
		return err
	}
	t.narrowing.setNarrowing(n)
	return nil
}

// Narrowing is what a sandbox's client has given up of the network; of an unknown
// sandbox, everything.
func (c *Controller) Narrowing(sandbox string) policy.Narrowing {
	t, err := c.tenants.getTenant(sandbox)
	if err != nil {
		return policy.Narrowing{Deny: []string{policy.Everything}}
	}
	return t.narrowing.getNarrowing()
}
