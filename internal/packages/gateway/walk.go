package gateway

import (
	"maps"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

// Limits of walks.
const (
	tryAgain  = 5 * time.Second // when what could not be had is tried again
	stepWidth = 8               // pages, and releases of each, that are read at one time
)

// guestWalk reads, for one guest and ecosystem, what leads from the policy's entries to what
// they require: one step at a time, whoever of the guest's requests needs it. All
// others wait for the step and look again. The door knows what was read.
type guestWalk struct {
	mu      sync.Mutex // guards all below
	stepped chan struct{}
	busy    bool
	asking  chan struct{}                  // closed and replaced when the guest asks for something
	failed  map[pkgref.Ref]time.Time       // what could not be had, and since when
	read    map[pkgref.Ref]map[string]bool // releases whose metadata was read, by project; false: it may not be, as things stand
}

// beginStep gives the step to the caller, or what to wait for.
func (w *guestWalk) beginStep() (mine bool, stepped <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy {
		return false, w.stepped
	}
	w.busy, w.stepped = true, make(chan struct{})
	return true, w.stepped
}

func (w *guestWalk) endStep() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.busy = false
	close(w.stepped)
}

// nextAsked returns a channel that is closed once the guest asks for something more.
func (w *guestWalk) nextAsked() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asking
}

// wakeAsked wakes those that wait for what the guest asks for next.
func (w *guestWalk) wakeAsked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.asking)
	w.asking = make(chan struct{})
}

// projectsToRetry are some projects that could not be had and may be by now.
func (w *guestWalk) projectsToRetry(now time.Time) (projects []pkgref.Ref) {
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

// noteFailed notes that a project could not be had.
func (w *guestWalk) noteFailed(project pkgref.Ref, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed[project] = now
}

// claimRelease tells whether a release's metadata is still to be read, and that it is now.
func (w *guestWalk) claimRelease(project pkgref.Ref, version string) bool {
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
func (w *guestWalk) setAside(project pkgref.Ref, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.read[project][version] = false
}

// retryProject has it asked again whether metadata of a project may be read that might not be:
// more leads to the project now.
func (w *guestWalk) retryProject(project pkgref.Ref) {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.read[project], func(_ string, read bool) bool { return !read })
}

// isKnown tells whether a release's metadata was read, or may not be.
func (w *guestWalk) isKnown(project pkgref.Ref, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, known := w.read[project][version]
	return known
}

// forgetRelease has a release's metadata read again when there is another reason to.
func (w *guestWalk) forgetRelease(project pkgref.Ref, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.read[project], version)
}

func newGuestWalk() *guestWalk {
	return &guestWalk{asking: make(chan struct{}), failed: map[pkgref.Ref]time.Time{}, read: map[pkgref.Ref]map[string]bool{}}
}
