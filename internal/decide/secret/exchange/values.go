package exchange

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// Runs are the values of secrets that must not be in any answer, by the runs that have them.
// Of a run they are kept while any of its requests is under way, on whichever connection: a
// value that one request brings is looked for in the answers of all others from then on, also
// in those that have begun. It is safe for concurrent use.
type Runs struct {
	lent Lent                               // nil: requests alone bring values
	make func(map[string][]string) *needles // newNeedles

	mu  sync.Mutex // guards all below
	all map[string]*values
	// stops are how many of a run's answers have ended within a secret. Each is on record, and they are kept as long
	// as the process lives: a run that nothing is under way of is asked again.
	stops map[string]int
}

// Lent tells which values of a run's secrets were lent since a moment, to whichever run, by their secrets'
// names, the moment up to which it tells, and whether there are more behind it. The first moment is 0.
type Lent func(ctx context.Context, run string, since uint64) (values map[string][]string, upTo uint64, more bool, err error)

// Asking has each part of an answer looked through for what Lent tells once it has come, beside what the
// run's own requests have brought: a value that another run is lent, or the daemon's own tools, comes to
// the hosts by no request of this one.
func (r *Runs) Asking(lent Lent) *Runs {
	r.lent = lent
	return r
}

// NewRuns makes one without values.
func NewRuns() *Runs {
	return &Runs{make: newNeedles, all: map[string]*values{}, stops: map[string]int{}}
}

// values are those of one run. Its Runs' mutex guards it.
type values struct {
	underway int                 // requests that have secrets and have not ended
	texts    map[string][]string // by their secrets' names; each list only grows at its end
	has      map[[2]string]bool  // each of texts, as a name and a text
	grown    uint64              // how often texts have grown

	making chan struct{} // whoever makes sought has it; one at a time, and nobody holds the mutex meanwhile
	sought *needles      // of texts, as they were when they had grown as often as of says
	of     uint64

	asking       chan struct{} // whoever asks Lent has it; one at a time
	begun, heard uint64        // the asks that have begun, and the last of these that was answered
	moment       uint64        // up to which Lent has told
}

// beginRequest has a run's request count as under way until its context ends. It comes before the
// request's secrets are asked for: what another request brings meanwhile is kept for its
// answer, too.
func (r *Runs) beginRequest(request context.Context, run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.all[run]
	if v == nil {
		v = &values{
			texts: map[string][]string{}, has: map[[2]string]bool{}, sought: &needles{}, making: make(chan struct{}, 1), asking: make(chan struct{}, 1),
		}
		r.all[run] = v
	}
	v.underway++
	safego.When(request, func() { r.endRequest(run, v) })
}

// endRequest has a request count no more. After a run's last one its values are forgotten: the next
// request gets them anew, and they must not lie about meanwhile.
func (r *Runs) endRequest(run string, v *values) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.underway--; v.underway == 0 {
		delete(r.all, run)
	}
}

// knowGiven adds what a request of the run was given, beside what was there before: a value that was
// renewed may still come back.
func (r *Runs) knowGiven(run string, given Given) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.all[run]
	if v == nil {
		return // the request has ended, and is not sent
	}
	own := map[string][]string{}
	for name, text := range given.Secrets {
		own[name] = []string{text}
	}
	v.addValues(own, given.Others)
}

// knowsValue tells whether the run knows a value of one of these secrets.
func (r *Runs) knowsValue(run string, names []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.all[run]
	return v != nil && slices.ContainsFunc(names, func(name string) bool { return len(v.texts[name]) > 0 })
}

// hearLent asks Lent, for what has come of an answer by now. Many answers of a run share an ask that begins when
// they wait for it. The caller does not hold mu.
func (r *Runs) hearLent(ctx context.Context, run string) error {
	r.mu.Lock()
	v := r.all[run]
	if r.lent == nil || v == nil {
		r.mu.Unlock()
		return nil
	}
	before := v.begun
	r.mu.Unlock()
	select {
	case v.asking <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-v.asking }()
	r.mu.Lock()
	if v.heard > before {
		r.mu.Unlock()
		return nil
	}
	v.begun++
	ask, since := v.begun, v.moment
	r.mu.Unlock()
	var all []map[string][]string // what is looked for is made once, however many answers there are
	for more := true; more; {
		var texts map[string][]string
		var err error
		if texts, since, more, err = r.lent(ctx, run, since); err != nil {
			return err
		}
		all = append(all, texts)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	v.heard, v.moment = ask, since
	v.addValues(all...)
	return nil
}

// addValues has more be sought. The Runs' mutex is held.
func (v *values) addValues(all ...map[string][]string) {
	before := len(v.has)
	for _, more := range all {
		for name, texts := range more {
			for _, text := range texts {
				if id := [2]string{name, text}; text != "" && !v.has[id] {
					v.has[id] = true
					v.texts[name] = append(v.texts[name], text)
				}
			}
		}
	}
	if len(v.has) > before {
		v.grown++
	}
}

// sought are the values that must not be in an answer to the run, as of now. What they are looked for by takes
// time to make, once they have grown: that is done for one run at a time, and no other run waits for it.
func (r *Runs) sought(run string) *needles {
	r.mu.Lock()
	v := r.all[run]
	r.mu.Unlock()
	if v == nil {
		return &needles{}
	}
	if made, _, _ := r.madeOf(v); made != nil {
		return made
	}
	v.making <- struct{}{}
	defer func() { <-v.making }()
	made, texts, grown := r.madeOf(v)
	if made != nil { // by whoever had it before
		return made
	}
	made = r.make(texts)
	r.mu.Lock()
	defer r.mu.Unlock()
	v.sought, v.of = made, grown
	return made
}

// madeOf is what a run's values are looked for by, if that is made of all of them; nil: it is not, and texts
// are what it is to be made of.
func (r *Runs) madeOf(v *values) (made *needles, texts map[string][]string, grown uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.of == v.grown {
		return v.sought, nil, v.grown
	}
	return nil, maps.Clone(v.texts), v.grown
}
