package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// How a run is told of what it waits for.
const (
	holdsPause = 500 * time.Millisecond // before a daemon that went away is asked again
	holdsShown = 8                      // lines at one time; the queue has the rest
)

// detached is why a run ends for us and for nobody else.
type detached struct{}

func (*detached) Error() string { return "the run was left waiting" }

// holdTeller tells the person what the run waits for, and what became of that.
type holdTeller struct {
	say func(format string, args ...any)

	mu     sync.Mutex // guards what follows
	holds  []api.Hold
	frozen bool
	note   string          // why it is not frozen
	said   map[string]bool // of trees
}

// noteSaid notes that something is said, and tells whether it is for the first time.
func (t *holdTeller) noteSaid(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.said[text] {
		return false
	}
	if t.said == nil {
		t.said = map[string]bool{}
	}
	t.said[text] = true
	return true
}

// requestOf is what a person answers: the tree, where there is one.
func requestOf(h api.Hold) string { return cmp.Or(h.Tree, h.Request) }

// waiting is what the person was told last.
func (t *holdTeller) waiting() []api.Hold {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.holds)
}

// update tells the difference to what is waited for now; answer says in words how
// a request was answered.
func (t *holdTeller) update(now []api.Hold, answer func(api.Hold) string) {
	t.mu.Lock()
	before := t.holds
	t.holds = now
	t.mu.Unlock()
	for _, h := range subtractHolds(before, now) {
		if text := answer(h); h.Tree == "" || t.noteSaid(text) { // of a tree once, not for each of its releases
			t.say("%s", text)
		}
	}
	var fresh []api.Hold
	for _, h := range subtractHolds(now, before) {
		if h.Tree == "" || t.noteSaid("waits "+h.Tree) {
			fresh = append(fresh, h)
		}
	}
	if len(fresh) > 0 {
		t.announce(fresh)
	}
	frozen := slices.ContainsFunc(now, func(h api.Hold) bool { return h.Frozen })
	if frozen && !t.frozen {
		t.say("the sandbox is frozen on disk until then")
	}
	t.frozen = frozen
	note := ""
	for _, h := range now {
		note = h.Unfrozen
	}
	if note != "" && note != t.note {
		t.say("the sandbox is not frozen meanwhile: %s", note)
	}
	t.note = note
}

func (t *holdTeller) announce(fresh []api.Hold) {
	for _, h := range fresh[:min(len(fresh), holdsShown)] {
		if h.Tree != "" {
			t.say("%s and what is installed with it wait for approval as one request (%s): %s", h.Package, h.Tree, h.Reason)
			continue
		}
		t.say("%s waits for approval (%s): %s", h.Package, h.Request, h.Reason)
	}
	if more := len(fresh) - holdsShown; more > 0 {
		t.say("and %d more; see cofferdam approvals list", more)
	}
	t.say("to let it in: cofferdam approvals approve %s (Ctrl-C leaves the run waiting)", requests(fresh))
}

// requests are the distinct ids of holds.
func requests(holds []api.Hold) string {
	var ids []string
	for _, h := range holds {
		if id := requestOf(h); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}

// subtractHolds returns the holds of a whose request and package are not in b.
func subtractHolds(a, b []api.Hold) []api.Hold {
	var rest []api.Hold
	for _, h := range a {
		same := func(o api.Hold) bool { return o.Request == h.Request && o.Package == h.Package }
		if !slices.ContainsFunc(b, same) {
			rest = append(rest, h)
		}
	}
	return rest
}

// watchHolds tells the person what the run waits for until the returned function
// is called. Where the daemon goes away, whoever follows the command brings
// another up.
func (r *runner) watchHolds(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := r.tellHolds(ctx)
			if !errors.Is(err, client.ErrLost) && !errors.Is(err, client.ErrNoDaemon) {
				return
			}
			if pauseFor(ctx, holdsPause) != nil {
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (r *runner) tellHolds(ctx context.Context) error {
	for holds, err := range r.client.WatchHolds(ctx, r.box.ID) {
		if err != nil {
			return err
		}
		r.holds.update(holds, func(h api.Hold) string { return r.answerTo(ctx, h) })
		if r.flags.detach && len(holds) > 0 {
			r.detach()
		}
	}
	return nil
}

// answerTo says what became of a hold.
func (r *runner) answerTo(ctx context.Context, h api.Hold) string {
	ctx, cancel := withQuickTimeout(ctx)
	defer cancel()
	if h.Tree != "" {
		if whole, err := r.queued(ctx, h.Tree); err == nil && whole.State != approval.Pending {
			return describeHoldAnswer(api.Hold{Request: h.Tree, Package: releaseText(whole)}, whole)
		}
	}
	request, err := r.queued(ctx, h.Request)
	if err != nil {
		return fmt.Sprintf("%s: %s does not wait any more (the answer is not available: %s)", h.Request, h.Package, err)
	}
	switch request.State {
	case approval.Approved, approval.Denied:
		return describeHoldAnswer(h, request)
	case approval.Expired:
		return fmt.Sprintf("%s: nobody answered about %s in time; the run goes on without it", h.Request, h.Package)
	case approval.Superseded:
		return fmt.Sprintf("%s: the files of %s are others now; it must be asked for again", h.Request, h.Package)
	case approval.Pending:
	}
	return fmt.Sprintf("%s: the command does not wait for %s any longer; the request stays, and a retry joins it", h.Request, h.Package)
}

func (r *runner) queued(ctx context.Context, id string) (request approval.Request, err error) {
	data, err := r.client.Approval(ctx, id)
	if err != nil {
		return request, err
	}
	return readRequest(data)
}

func describeHoldAnswer(h api.Hold, request approval.Request) string {
	by, because := "", ""
	if a := request.Answer; a != nil {
		by = " by " + a.By
		if a.Reason != "" {
			because = ": " + a.Reason
		}
	}
	if request.State == approval.Denied {
		return fmt.Sprintf("%s: %s was denied%s%s; the run goes on without it", h.Request, h.Package, by, because)
	}
	return fmt.Sprintf("%s: %s was approved%s%s; the run goes on", h.Request, h.Package, by, because)
}

// detach leaves a run that waits for a person; false if it does not wait.
func (r *runner) detach() bool {
	if len(r.holds.waiting()) == 0 {
		return false
	}
	r.end(&detached{})
	return true
}

// printWayBack says how to go back to a run that waits on.
func (r *runner) printWayBack(ctx context.Context) error {
	holds := r.holds.waiting()
	r.prolongLease(ctx)
	r.stderr.Say("the run %s was left waiting for %s", r.box.Run, requests(holds))
	for _, line := range [][2]string{
		{"let it in:", "cofferdam approvals approve " + requests(holds)},
		{"go back to it:", "cofferdam attach " + r.box.Run},
		{"end it:", "cofferdam kill " + r.box.ID},
	} {
		r.stderr.Line(fmt.Sprintf("  %-15s %s", line[0], ui.Printable(line[1])))
	}
	return &exitError{code: exitDetached, err: &detached{}, said: true}
}
