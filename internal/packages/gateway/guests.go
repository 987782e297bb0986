package gateway

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// maxGuests bounds how many guests are remembered; the one unseen for longest
// is forgotten, and its quota begins anew.
const maxGuests = 4096

// guestRates keep each guest's rate and the names that it asked for.
type guestRates struct {
	limits Limits

	mu   sync.Mutex
	byID map[string]*guest
}

// guest is one sandbox as the gateway sees it: an identity that came with the connection. All
// fields are guarded by guests.mu.
type guest struct {
	seen   time.Time
	tokens float64 // below zero: turns that were given and are not due yet
	// Projects: those of which something is allowed, those that are only shown,
	// those that led to nothing, and those that are being asked for now.
	admitted, shown, refused map[string]bool
	asking                   map[string]int
	asked                    chan struct{}                   // closed and replaced when an asking ends
	walks                    map[pkgref.Ecosystem]*guestWalk // each has a lock of its own
}

func newGuestRates(l Limits) *guestRates { return &guestRates{limits: l, byID: map[string]*guest{}} }

func (gs *guestRates) getGuest(id string) *guest {
	now := time.Now()
	g := gs.byID[id]
	if g == nil {
		if len(gs.byID) >= maxGuests {
			gs.forgetOldest()
		}
		g = &guest{
			seen: now, tokens: float64(2 * gs.limits.Requests),
			admitted: map[string]bool{}, shown: map[string]bool{}, refused: map[string]bool{}, asking: map[string]int{}, asked: make(chan struct{}), walks: map[pkgref.Ecosystem]*guestWalk{},
		}
		gs.byID[id] = g
	}
	g.tokens = min(float64(2*gs.limits.Requests), g.tokens+now.Sub(g.seen).Seconds()*float64(gs.limits.Requests))
	g.seen = now
	return g
}

func (gs *guestRates) forgetOldest() {
	var oldest string
	for id, g := range gs.byID {
		if oldest == "" || g.seen.Before(gs.byID[oldest].seen) {
			oldest = id
		}
	}
	delete(gs.byID, oldest)
}

// admitRequest takes one request out of the guest's rate, and waits for its turn if
// there is none left: clients give up at a refusal, however soon they could have
// had an answer. It refuses when the turn is too far away, or the client goes.
func (gs *guestRates) admitRequest(ctx context.Context, id string) bool {
	turn, ok := gs.queueRequest(id)
	if !ok || turn == 0 {
		return ok
	}
	wait := time.NewTimer(turn)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// queueRequest tells how long a request has to wait for its turn. Turns that were given
// count against the rate as if the requests had been answered.
func (gs *guestRates) queueRequest(id string) (turn time.Duration, ok bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	if g.tokens < 1 {
		turn = time.Duration((1 - g.tokens) / float64(gs.limits.Requests) * float64(time.Second))
	}
	if turn > gs.limits.Queue {
		return 0, false
	}
	g.tokens--
	return turn, true
}

// errRefusedNames refuses a name without asking anybody about it: names are a
// channel to the outside.
var errRefusedNames = fault.New(fault.ErrForbidden, "this run has asked for too many different packages that it may not have; it gets no new names")

// errShownNames is the same for names that are shown and admitted by nothing: one
// that exists says as much to who reads it at the other end.
var errShownNames = fault.New(fault.ErrForbidden, "this run has asked for too many different packages that nobody has approved; it gets no new names")

// outcome is what came of a guest's asking for a project's name.
type outcome int

const (
	nameRefused  outcome = iota // it leads to nothing
	nameShown                   // it is shown, and nothing of it is admitted
	nameAdmitted                // something of it is allowed
)

// outcomeOf is that by a decision about a project, or about something of it.
func outcomeOf(d policy.Decision) outcome {
	switch {
	case d.Admitted():
		return nameAdmitted
	case d.Shown():
		return nameShown
	}
	return nameRefused
}

// naming is what an upstream would hear of a guest's.
type naming struct {
	project  string
	admitted bool // the policy, or what was read, names the project
	// text is what it would hear beside the project's name that no page was seen to list: a
	// version, or the name of a branch; "": nothing.
	text string
}

// keyOfNaming names the text among those of all projects.
func (n naming) keyOfNaming() string { return n.project + "\x00" + n.text }

// knowsProject tells whether the guest has asked for the project before, or may without being
// counted; guests.mu is held.
func (g *guest) knowsProject(n naming) bool {
	return n.admitted || g.admitted[n.project] || g.shown[n.project] || g.refused[n.project] || g.asking[n.project] > 0 || g.isAbove(n.project)
}

// unitOf is what a naming is counted as: a project with all that is asked of it at first, or
// a text that is new. known tells that it need not be counted; guests.mu is held.
func (g *guest) unitOf(n naming) (name string, known bool) {
	if !g.knowsProject(n) || n.text == "" {
		return n.project, g.knowsProject(n)
	}
	key := n.keyOfNaming()
	return key, g.admitted[key] || g.refused[key] || g.asking[key] > 0
}

// beginAsk begins a request about a project. A guest that has used up the names
// that may be refused, or shown to it unadmitted, is refused all names that it has not
// asked for before, but those that the policy or what was read names (admitted); while
// their number is not settled it waits. Texts beside the name count as names do. done
// settles it.
func (gs *guestRates) beginAsk(id string, n naming, stop <-chan struct{}) (done func(outcome), err error) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for {
		g := gs.getGuest(id)
		unit, known := g.unitOf(n)
		if known || len(g.refused)+len(g.asking) < gs.limits.RefusedNames && len(g.shown)+len(g.asking) < gs.limits.ShownNames {
			g.asking[unit]++
			return func(o outcome) { gs.settleAsk(g, n, unit, o) }, nil
		}
		if len(g.asking) == 0 && len(g.refused) >= gs.limits.RefusedNames {
			return nil, errRefusedNames
		}
		if len(g.asking) == 0 {
			return nil, errShownNames
		}
		asked := g.asked
		gs.mu.Unlock()
		var stopped bool
		select {
		case <-asked:
		case <-stop:
			stopped = true
		}
		gs.mu.Lock()
		if stopped {
			return nil, fault.New(fault.ErrUnavailable, "the client gave up")
		}
	}
}

// mayName tells whether a guest may have the project named to an upstream without being
// counted.
func (gs *guestRates) mayName(id string, n naming) bool {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.getGuest(id).knowsProject(n)
}

// isAbove tells whether a name is the beginning of one that is shown, up to a
// slash: resolvers that know an import and not its module try all of these, and
// they tell nobody more than that name itself does.
func (g *guest) isAbove(project string) bool {
	for _, names := range []map[string]bool{g.admitted, g.shown} {
		for name := range names {
			if strings.HasPrefix(name, project+"/") {
				return true
			}
		}
	}
	return false
}

func (gs *guestRates) settleAsk(g *guest, n naming, unit string, result outcome) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g.asking[unit]--; g.asking[unit] <= 0 {
		delete(g.asking, unit)
	}
	project := n.project
	switch {
	case result == nameAdmitted:
		g.admitted[project] = true
		delete(g.shown, project)
	case result == nameShown && !g.admitted[project]:
		g.shown[project] = true
	case result == nameRefused && !n.admitted && !g.admitted[project] && !g.shown[project] && !g.isAbove(project):
		g.refused[project] = true
	}
	if result != nameRefused {
		maps.DeleteFunc(g.refused, func(s string, _ bool) bool { return s == project || strings.HasPrefix(project, s+"/") })
	}
	if n.text != "" {
		g.settleText(n, result)
	}
	close(g.asked)
	g.asked = make(chan struct{})
}

// settleText takes what came of the text beside a project's name; guests.mu is held. One that
// leads to something names what exists, and counts no more. Resolvers that know an import
// and not its module ask all that its name begins with for the same text.
func (g *guest) settleText(n naming, result outcome) {
	key := n.keyOfNaming()
	switch {
	case result != nameRefused:
		g.admitted[key] = true
		maps.DeleteFunc(g.refused, func(s string, _ bool) bool {
			project, text, ok := strings.Cut(s, "\x00")
			return ok && text == n.text && (project == n.project || strings.HasPrefix(n.project, project+"/"))
		})
	case !g.admitted[key] && !g.refused[n.project]: // else it was counted with the project
		g.refused[key] = true
	}
}

// walkOf is a guest's walk in an ecosystem.
func (gs *guestRates) walkOf(id string, e pkgref.Ecosystem) *guestWalk {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.getGuest(id)
	w := g.walks[e]
	if w == nil {
		w = newGuestWalk()
		g.walks[e] = w
	}
	return w
}
