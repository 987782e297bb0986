package exchange

import (
	"context"
	"slices"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/errand"
)

// Runs are the values of secrets that must not be in any answer, by the runs that have them.
// Of a run they are kept while any of its requests is under way, on whichever connection: a
// value that one request brings is looked for in the answers of all others from then on, also
// in those that have begun. It is safe for concurrent use.
type Runs struct {
	mu  sync.Mutex // guards all below
	all map[string]*values
}

// NewRuns makes one without values.
func NewRuns() *Runs { return &Runs{all: map[string]*values{}} }

// values are those of one run. Its Runs' mutex guards it.
type values struct {
	underway int                 // requests that have secrets and have not ended
	texts    map[string][]string // by their secrets' names
	sought   *needles            // of texts; another one, once they have grown
}

// begin has a run's request count as under way until its context ends. It comes before the
// request's secrets are asked for: what another request brings meanwhile is kept for its
// answer, too.
func (r *Runs) begin(request context.Context, run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.all[run]
	if v == nil {
		v = &values{texts: map[string][]string{}, sought: &needles{}}
		r.all[run] = v
	}
	v.underway++
	errand.When(request, func() { r.end(run, v) })
}

// end has a request count no more. After a run's last one its values are forgotten: the next
// request gets them anew, and they must not lie about meanwhile.
func (r *Runs) end(run string, v *values) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v.underway--; v.underway == 0 {
		delete(r.all, run)
	}
}

// know adds what a request of the run was given, beside what was there before: a value that was
// renewed may still come back.
func (r *Runs) know(run string, given Given) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := r.all[run]
	if v == nil {
		return // the request has ended, and is not sent
	}
	grown := false
	add := func(name, text string) {
		if text != "" && !slices.Contains(v.texts[name], text) {
			v.texts[name], grown = append(v.texts[name], text), true
		}
	}
	for name, text := range given.Secrets {
		add(name, text)
	}
	for name, texts := range given.Others {
		for _, text := range texts {
			add(name, text)
		}
	}
	if grown {
		v.sought = newNeedles(v.texts)
	}
}

// sought are the values that must not be in an answer to the run, as of now.
func (r *Runs) sought(run string) *needles {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.all[run]; v != nil {
		return v.sought
	}
	return &needles{}
}
