package gateway

import (
	"maps"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// Limits of walks.
const (
	tryAgain  = 5 * time.Second // when what could not be had is tried again
	stepWidth = 8               // pages, and releases of each, that are read at one time
)

// walk reads, for one guest and ecosystem, what leads from the policy's entries to what
// they require: one step at a time, whoever of the guest's requests needs it. All
// others wait for the step and look again. What was read the door knows.
type walk struct {
	mu      sync.Mutex // guards all below
	stepped chan struct{}
	busy    bool
	asking  chan struct{}                  // closed and replaced when the guest asks for something
	failed  map[pkgref.Ref]time.Time       // what could not be had, and since when
	read    map[pkgref.Ref]map[string]bool // releases whose metadata was read, by project; false: it may not be, as things stand
}

// begin gives the step to the caller, or what to wait for.
func (w *walk) begin() (mine bool, stepped <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return false, w.stepped
	}
	w.busy, w.stepped = true, make(chan struct{})
	return true, w.stepped
}

func (w *walk) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	close(w.stepped)
}

// next is closed once the guest asks for something more.
func (w *walk) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asking
}

// asked wakes those that wait for what the guest asks for next.
func (w *walk) asked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.asking)
	w.asking = make(chan struct{})
}

// again are some projects that could not be had and may be by now.
func (w *walk) again(now time.Time) (projects []pkgref.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for project, at := range w.failed {
		if now.Sub(at) >= tryAgain && len(projects) < stepWidth {
			projects = append(projects, project)
			delete(w.failed, project)
		}
	}
	return projects
}

// fail notes that a project could not be had.
func (w *walk) fail(project pkgref.Ref, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[project] = now
}

// claim tells whether a release's metadata is still to be read, and that it is now.
func (w *walk) claim(project pkgref.Ref, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	versions := w.read[project]
	if versions == nil {
		versions = map[string]bool{}
		w.read[project] = versions
	}
	if _, known := versions[version]; known {
		return false
	}
	versions[version] = true
	return true
}

// setAside notes that a release's metadata may not be read, as things stand.
func (w *walk) setAside(project pkgref.Ref, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[project][version] = false
}

// retry has it asked again whether metadata of a project may be read that might not be:
// more leads to the project now.
func (w *walk) retry(project pkgref.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.read[project], func(_ string, read bool) bool { return !read })
}

// known tells whether a release's metadata was read, or may not be.
func (w *walk) known(project pkgref.Ref, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.read[project][version]
	return known
}

// forget has a release's metadata read again when there is another reason to.
func (w *walk) forget(project pkgref.Ref, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.read[project], version)
}

func newWalk() *walk {
	return &walk{asking: make(chan struct{}), failed: map[pkgref.Ref]time.Time{}, read: map[pkgref.Ref]map[string]bool{}}
}
