package records

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Bounds of what is kept of one sandbox: packages inside of served files, of which the
// others count as unaccounted for, and paths inside of them.
const (
	maxBrought     = 50_000
	maxInsidePaths = 50_000
)

// Deliveries are the files that were served to one sandbox, by their records. Safe for
// concurrent use.
type Deliveries struct {
	mu      sync.Mutex // guards all below
	served  map[uint64]*delivery
	last    map[pkgref.Ref]*delivery // of each release
	brought map[pkgref.Ref]string    // releases inside of served files, by which release
	inside  map[pkgref.Ref][]string  // paths in what was served, by release; not known of what another daemon served
	paths   int                      // in inside, together
}

// delivery is one served file.
type delivery struct {
	record  audit.Record
	sending bool // the gateway has not told its end
}

// NewDeliveries makes those of a sandbox that was served nothing.
func NewDeliveries() *Deliveries {
	return &Deliveries{
		served: map[uint64]*delivery{}, last: map[pkgref.Ref]*delivery{}, brought: map[pkgref.Ref]string{}, inside: map[pkgref.Ref][]string{},
	}
}

// Add takes a `served` record of the log.
func (d *Deliveries) Add(r audit.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addRecord(r)
}

// Bring takes that a file which is none of an ecosystem's brought a release inside.
func (d *Deliveries) Bring(inner pkgref.Ref, outer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.brought) < maxBrought {
		d.brought[inner.Release()] = outer
	}
}

// Send takes a `served` record that was just made, of a file that is sent now and has
// these paths inside. Paths that are not kept are told as unknown.
func (d *Deliveries) Send(r audit.Record, paths []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addRecord(r)
	d.served[r.Seq].sending = true
	release := RefOf(r).Release()
	if len(paths) == 0 || d.inside[release] != nil || d.paths+len(paths) > maxInsidePaths {
		return
	}
	d.paths += len(paths)
	d.inside[release] = slices.Clone(paths)
}

// addRecord needs mu.
func (d *Deliveries) addRecord(r audit.Record) {
	f := &delivery{record: r}
	d.served[r.Seq] = f
	d.last[RefOf(r).Release()] = f
	for text := range strings.SplitSeq(r.Detail[DetailBundled], ", ") {
		name, version, _ := strings.Cut(text, " ")
		if inner, err := pkgref.New(pkgref.Ecosystem(r.Ecosystem), name, version); err == nil && version != "" && len(d.brought) < maxBrought {
			d.brought[inner.Release()] = RefOf(r).String()
		}
	}
}

// Sent takes that all of a file was sent.
func (d *Deliveries) Sent(seq uint64) error {
	_, err := d.Abort(seq)
	return err
}

// Abort takes that a file was not sent whole, and returns its record.
func (d *Deliveries) Abort(seq uint64) (audit.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.served[seq]
	if f == nil || !f.sending {
		return audit.Record{}, fault.New(fault.ErrNotFound, "record %d is not a file that is being sent to this sandbox", seq)
	}
	f.sending = false
	return f.record, nil
}

// Resume takes an abort back that could not be recorded.
func (d *Deliveries) Resume(seq uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.served[seq].sending = true
}

// Sending are the records of what is being sent, in their order.
func (d *Deliveries) Sending() []uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var open []uint64
	for seq, f := range d.served {
		if f.sending {
			open = append(open, seq)
		}
	}
	slices.Sort(open)
	return open
}

// All are the records of all served files, in no order.
func (d *Deliveries) All() []audit.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]audit.Record, 0, len(d.served))
	for _, f := range d.served {
		all = append(all, f.record)
	}
	return all
}

// Last are the records of the last served file of each release, in no order.
func (d *Deliveries) Last() []audit.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]audit.Record, 0, len(d.last))
	for _, f := range d.last {
		all = append(all, f.record)
	}
	return all
}

// Of is the record of the last file of a release; false if none was served.
func (d *Deliveries) Of(release pkgref.Ref) (audit.Record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.last[release]
	if f == nil {
		return audit.Record{}, false
	}
	return f.record, true
}

// Projects are those of which something was served, with a record of it.
func (d *Deliveries) Projects() map[pkgref.Ref]audit.Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	projects := map[pkgref.Ref]audit.Record{}
	for ref, f := range d.last {
		projects[ref.Project()] = f.record
	}
	return projects
}

// Brought are the releases inside of served files, by which release.
func (d *Deliveries) Brought() map[pkgref.Ref]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.brought)
}

// Inside are the paths in what was served of a release; nil: they are not known.
func (d *Deliveries) Inside(release pkgref.Ref) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inside[release]
}
