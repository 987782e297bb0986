package daemon

import (
	"context"
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
)

// tokens tells whose secret a request shows.
type tokens interface {
	Check(secret string) (token.Token, bool)
}

// Kinds of clients, each with a pace of its own. A sandbox's data plane may be
// asked more often than the daemon itself; who shows nothing that is known may
// ask less.
const (
	fromToken    = "token"
	fromSandbox  = "sandbox" // the data plane
	fromPort     = "port"    // visitors of what a sandbox publishes
	fromStranger = "stranger"

	dataFactor     = 5
	strangerFactor = 0.25
)

// admitRequest says who a request is from, whether it may go on now, and if not, in how many seconds it
// may. owner is whose its connection is: a token, or a sandbox that belongs to none.
func (f *front) admitRequest(r *http.Request, sandbox string, data bool) (who, owner string, after int, ok bool) {
	who, key, factor := f.requestOwner(r, sandbox, data)
	owner = key
	if who == fromSandbox {
		if token, _ := f.ownerOf(sandbox); token != "" { // who has many sandboxes has no more for it
			owner = token
		}
	}
	after, ok = f.pace.allowRequest(who+" "+key, factor)
	return who, owner, after, ok
}

func (f *front) requestOwner(r *http.Request, sandbox string, data bool) (who, key string, factor float64) {
	if _, known := f.ownerOf(sandbox); data && sandbox != "" && known {
		switch {
		case r.Header.Get(sandboxHeader) == "":
			return fromPort, sandbox, dataFactor
		case f.wires.holds == nil || f.wires.holds(r, sandbox): // who only knows its name must not use up its pace
			return fromSandbox, sandbox, dataFactor
		}
	}
	if secret := backend.Secret(r); !data && secret != "" && f.tokens != nil {
		if t, ok := f.tokens.Check(secret); ok {
			return fromToken, t.ID, 1
		}
	}
	if !data && f.wires.uploader != nil {
		if id, ok := f.wires.uploader(r); ok {
			return fromToken, id, 1
		}
	}
	return fromStranger, networkAt(r.RemoteAddr).String(), strangerFactor // as its connections are counted
}

// A refusal is kept back for a while, so that who does not heed it asks no faster than
// that on each connection; but only so many at one time.
const (
	refusalTime  = 200 * time.Millisecond
	refusalsHeld = 256
)

// slowRefusal waits before a refusal for its pace is told.
func (f *front) slowRefusal(ctx context.Context) {
	if f.slowed.Add(1) <= refusalsHeld {
		timer := time.NewTimer(refusalTime)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	f.slowed.Add(-1)
}

// maxPaced bounds how many clients' paces are kept, twice.
const maxPaced = 10_000

// pace holds each client to a number of requests. It keeps what was used since
// the last change of generations, and the generation before: so it has an end, and
// who comes often is never forgotten.
type pace struct {
	perSecond float64
	burst     int

	mu          sync.Mutex // guards what follows
	recent, old map[string]*rate.Limiter
}

func newPace(perSecond float64, burst int) *pace {
	return &pace{perSecond: perSecond, burst: burst, recent: map[string]*rate.Limiter{}}
}

// allowRequest counts a request of a client; after is in seconds, at least 1.
func (p *pace) allowRequest(key string, factor float64) (after int, ok bool) {
	reserved := p.limiterOf(key, factor).Reserve()
	if !reserved.OK() {
		return 1, false
	}
	wait := reserved.Delay()
	if wait == 0 {
		return 0, true
	}
	reserved.Cancel()
	return max(1, int(math.Ceil(wait.Seconds()))), false
}

func (p *pace) limiterOf(key string, factor float64) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.recent[key]; l != nil {
		return l
	}
	l := p.old[key]
	if l == nil {
		l = rate.NewLimiter(rate.Limit(p.perSecond*factor), max(1, int(float64(p.burst)*factor)))
	}
	if len(p.recent) >= maxPaced {
		p.old, p.recent = p.recent, map[string]*rate.Limiter{}
	}
	p.recent[key] = l
	return l
}
