package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

// queue is an approval queue in memory. Its answers are for everybody, and bound
// to the digests that were known when they were given.
type queue struct {
	mu       sync.Mutex
	requests []approval.Request
	joined   int
	changed  chan struct{} // closed and replaced at each change
	fails    error         // of every call
	full     error         // of Ask
	trees    []approval.TreeAsk
}

var _ Approvals = (*queue)(nil)

func newQueue() *queue { return &queue{changed: make(chan struct{})} }

func (q *queue) Ask(_ context.Context, ask approval.Ask) (approval.Request, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := errors.Join(q.fails, q.full); err != nil {
		return approval.Request{}, err
	}
	asker := approval.Asker{Run: ask.Run, Sandbox: ask.Sandbox, Task: ask.Task, User: ask.User, WantedBy: ask.WantedBy}
	for i := range q.requests {
		r := &q.requests[i]
		if r.Package == ask.Package && r.State == approval.Pending {
			q.joined++
			r.Asks = append(r.Asks, asker)
			for _, f := range ask.Files {
				at := slices.IndexFunc(r.Files, func(k approval.File) bool { return k.Name == f.Name })
				if at < 0 {
					r.Files = append(r.Files, f)
					continue
				}
				r.Files[at] = f
			}
			return *r, nil
		}
	}
	r := approval.Request{
		ID: fmt.Sprintf("ap-%d", len(q.requests)+1), State: approval.Pending, Package: ask.Package, Upstream: ask.Upstream, Files: ask.Files,
		Evidence: ask.Evidence, Rule: ask.Rule, Reason: ask.Reason, Notes: ask.Notes, Asks: []approval.Asker{asker},
	}
	q.requests = append(q.requests, r)
	q.change()
	return r, nil
}

// AskTree makes its members requests of "ap-tree".
func (q *queue) AskTree(ctx context.Context, tree approval.TreeAsk) (approval.Request, error) {
	q.mu.Lock()
	q.trees = append(q.trees, tree)
	q.mu.Unlock()
	for _, m := range tree.Members {
		r, err := q.Ask(ctx, m.Ask)
		if err != nil {
			return approval.Request{}, err
		}
		q.mu.Lock()
		for i := range q.requests {
			if q.requests[i].ID == r.ID {
				q.requests[i].Tree = "ap-tree"
			}
		}
		q.mu.Unlock()
	}
	return approval.Request{ID: "ap-tree", State: approval.Pending}, nil
}

// change wakes whoever waits; mu is held.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q *queue) Await(ctx context.Context, id string) (approval.Request, error) {
	for {
		r, changed := q.get(id)
		if r.State != approval.Pending {
			return r, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return approval.Request{}, ctx.Err()
		}
	}
}

func (q *queue) get(id string) (approval.Request, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.requests, func(r approval.Request) bool { return r.ID == id })
	if at < 0 {
		return approval.Request{}, q.changed
	}
	return q.requests[at], q.changed
}

func (q *queue) Grants(_ context.Context, project pkgref.Ref, _ approval.Asker) ([]policy.Approval, string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.fails != nil {
		return nil, "", q.fails
	}
	var grants []policy.Approval
	for _, r := range q.requests {
		if r.Package.Project() == project && r.Answer != nil {
			grants = append(grants, policy.Approval{
				ID: r.ID, Version: r.Package.Version, Denied: r.State == approval.Denied, By: r.Answer.By, Reason: r.Answer.Reason, Digests: r.Answer.Digests,
			})
		}
	}
	return grants, fmt.Sprint(len(grants)), nil
}

func (*queue) Use(context.Context, string) error { return nil }

// answer decides a request; by none of digests it is bound to what is known.
func (q *queue) answer(tb testing.TB, id string, state approval.State, digests ...string) {
	tb.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.IndexFunc(q.requests, func(r approval.Request) bool { return r.ID == id && r.State == approval.Pending })
	if at < 0 {
		tb.Fatalf("%s is not pending: %+v", id, q.requests)
	}
	r := &q.requests[at]
	if len(digests) == 0 {
		for _, f := range r.Files {
			digests = append(digests, f.Digests...)
		}
	}
	r.State = state
	if state != approval.Expired {
		r.Answer = &approval.Answer{State: state, By: "bob", Reason: "because", Digests: digests}
	}
	q.change()
}

// revoke ends an approval.
func (q *queue) revoke(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.requests {
		if q.requests[i].ID == id {
			q.requests[i].State, q.requests[i].Answer = approval.Expired, nil
		}
	}
	q.change()
}

func (q *queue) list() []approval.Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.requests)
}

// holder notes what a sandbox waits for.
type holder struct {
	mu     sync.Mutex
	held   []Hold
	frozen []Hold // of held, those that ask for a freeze
	past   int    // released
	signal chan struct{}
}

var _ Holder = (*holder)(nil)

func newHolder() *holder { return &holder{signal: make(chan struct{}, 1_000)} }

func (h *holder) Held(_ string, hold Hold, freeze bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = append(h.held, hold)
	if freeze {
		h.frozen = append(h.frozen, hold)
	}
	h.signal <- struct{}{}
}

func (h *holder) Released(_ context.Context, _ string, hold Hold) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.Index(h.held, hold)
	if at < 0 {
		return fmt.Errorf("%+v was not held", hold)
	}
	h.held = slices.Delete(h.held, at, at+1)
	h.past++
	return nil
}

func (h *holder) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []string
	for _, hold := range h.held {
		ids = append(ids, hold.Approval)
	}
	slices.Sort(ids)
	return fmt.Sprintf("held %s, %d to be frozen, %d released", strings.Join(ids, " "), len(h.frozen), h.past)
}
