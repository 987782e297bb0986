// Package agenthome keeps what agents have below their home directory from one sandbox to the
// next: logins, settings, histories.
//
// Each home is that of a user of the host, under a name. Of the home directory some directories are
// kept, such as .claude. A sandbox sees these places and nothing else of a home, so what it makes
// in one never decides where another lies on the host.
package agenthome

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Bounds of what is asked for.
const (
	maxPlaces = 16
	maxOfUser = 100
)

// Home says which one it is. The zero one is none.
type Home struct {
	UID  int    `json:"uid"` // whose on the host
	Name string `json:"name"`
}

// IsZero tells whether it is none.
func (h Home) IsZero() bool { return h.Name == "" }

// Kept is a home on the disk.
type Kept struct {
	Home
	Places  []string // as sandboxes saw them, sorted
	Bytes   int64
	Entries int
	Unseen  Unseen    // of which it is not known what it takes
	Past    string    // the bound past which it was not looked at, as the end of a sentence that begins with it; "": all of it was
	Large   bool      // more than the sandbox may have, as far as is known, or past a bound
	Unread  bool      // the sandbox's processes hold more descriptors and mappings than are looked at
	Used    time.Time // when a sandbox last began with it
	Sandbox string    // that has it now; "": none
}

// Shelf has the homes of an installation. Safe for concurrent use. A nil one has none, and
// nobody takes one of it.
type Shelf struct {
	dir string
	// measure and remove are slow: a home may have many files. They are called without mu,
	// which is on the way of every sandbox that ends.
	measure func(ctx context.Context, dir string) (Kept, error)
	remove  func(dir string) error

	mu    sync.Mutex      // guards taken, and which homes there are
	taken map[string]Home // by sandbox

	looks  sync.Mutex      // is held for as long as Over looks, and by nothing else
	waited map[string]bool // calls that waited at the look before; guarded by looks
}

// NewShelf makes the shelf of a directory, which need not exist.
func NewShelf(dir string) *Shelf {
	return &Shelf{dir: dir, measure: measure, remove: os.RemoveAll, taken: map[string]Home{}, waited: map[string]bool{}}
}

// Above are the directories on the way to places, the upper ones first.
func Above(places []string) []string {
	var all []string
	for _, p := range places {
		for i, r := range p {
			if r == '/' && !slices.Contains(all, p[:i]) {
				all = append(all, p[:i])
			}
		}
	}
	return all
}

var homeName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// CheckName refuses what is no name of a home.
func CheckName(name string) error {
	if !homeName.MatchString(name) {
		return fault.Invalid("the home %.80q is no name: up to 64 letters, digits, dashes and underscores, starting with a letter or digit", name)
	}
	return nil
}

var placeName = regexp.MustCompile(`^[A-Za-z0-9._/-]+$`)

// checkPlaces refuses what is no directory below a home directory, or lies in another one.
func checkPlaces(places []string) error {
	if len(places) == 0 || len(places) > maxPlaces {
		return fault.Invalid("a home keeps 1 to %d directories, and this one %d", maxPlaces, len(places))
	}
	for i, p := range places {
		if !filepath.IsLocal(p) || filepath.Clean(p) != p || p == "." || len(p) > 128 || !placeName.MatchString(p) {
			return fault.Invalid("a home can't keep %.80q: it is a path below the home directory, such as .claude", p)
		}
		for _, other := range places[:i] {
			if p == other || strings.HasPrefix(p, other+"/") || strings.HasPrefix(other, p+"/") {
				return fault.Invalid("a home can't keep %s and %s: one lies in the other", other, p)
			}
		}
	}
	return nil
}

// Take gives a home to a sandbox that is to be made. There is never a second one beside it.
func (s *Shelf) Take(h Home, sandbox string) error {
	if h.IsZero() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if by := s.holder(h); by != "" && by != sandbox {
		return fault.New(fault.ErrConflict, "the home %s is the sandbox %s's, until that is removed; end it, or name another home", h.Name, by)
	}
	s.taken[sandbox] = h
	return nil
}

// Put gives a home to a sandbox that has it already.
func (s *Shelf) Put(h Home, sandbox string) {
	if h.IsZero() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[sandbox] = h
}

// Rename gives a home to a sandbox with another id.
func (s *Shelf) Rename(from, to string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h, has := s.taken[from]; has && from != to {
		delete(s.taken, from)
		s.taken[to] = h
	}
}

// Drop takes back what a sandbox had. Idempotent.
func (s *Shelf) Drop(sandbox string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, sandbox)
}

// holder needs mu.
func (s *Shelf) holder(h Home) string {
	for sandbox, has := range s.taken {
		if has == h {
			return sandbox
		}
	}
	return ""
}

// Want is what a sandbox needs of a home.
type Want struct {
	Home
	GID    int
	Places []string // below the home directory
	Inside string   // the home directory in the sandbox
	Most   int64    // bytes that it may have
}

// Mounts makes the places of a home that are not there, and shows them. Nothing that a
// sandbox made is on the way to them. One that is removed before the sandbox has taken it is
// refused when it is mounted, by its identity.
func (s *Shelf) Mounts(ctx context.Context, w Want) ([]engine.Mount, error) {
	if err := errors.Join(CheckName(w.Name), checkPlaces(w.Places)); err != nil {
		return nil, err
	}
	dir := s.pathOf(w.Home)
	has, err := s.measure(ctx, dir)
	if err == nil && has.Bytes >= w.Most {
		return nil, fault.Exhausted(0, "the home %s has %d MiB, and the policy's disk is %d; make room in it under a policy with more, or remove it", w.Name, has.Bytes>>20, w.Most>>20)
	}
	if err != nil {
		return nil, err
	}
	if err := s.makePlaces(w); err != nil {
		return nil, err
	}
	var all []engine.Mount
	for _, p := range w.Places {
		opened, err := hostpath.Follow(filepath.Join(dir, slotOf(p))) // no sandbox may write above it
		if err != nil {
			return nil, fault.Wrap(fault.ErrUnavailable, err, "the home %s can't be opened", w.Name)
		}
		opened.Close()
		all = append(all, engine.Mount{Source: opened.Name, Destination: filepath.Join(w.Inside, p), Origin: opened.ID})
	}
	now := time.Now()
	return all, os.Chtimes(dir, now, now)
}

// makePlaces makes the directories of a home that are not there, if there may be one more.
func (s *Shelf) makePlaces(w Want) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := s.pathOf(w.Home)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		entries, _ := os.ReadDir(filepath.Dir(dir)) // a folder that is not there has none
		there := len(slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return CheckName(e.Name()) != nil }))
		if there >= maxOfUser {
			return fault.Exhausted(0, "there are %d homes, and no more can be made; remove one with cofferdam home rm", there)
		}
	}
	for _, p := range w.Places {
		if err := makeOwned(filepath.Join(dir, slotOf(p)), w.UID, w.GID); err != nil {
			return fault.Wrap(fault.ErrUnavailable, err, "the home %s can't be made", w.Name)
		}
	}
	return nil
}

// makeOwned makes a directory that is its user's.
func makeOwned(dir string, uid, gid int) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o711); err != nil { //nolint:gosec // sandboxes' users come through it
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(dir, uid, gid)
}

// List has the homes of a user, by name.
func (s *Shelf) List(ctx context.Context, uid int) ([]Kept, error) {
	entries, err := os.ReadDir(s.pathOf(Home{UID: uid}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Kept
	for _, e := range entries {
		if CheckName(e.Name()) != nil {
			continue // being removed
		}
		k, err := s.keptOf(ctx, Home{UID: uid, Name: e.Name()})
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

func (s *Shelf) keptOf(ctx context.Context, h Home) (Kept, error) {
	k, err := s.measure(ctx, s.pathOf(h))
	k.Home = h
	if err != nil {
		return k, err
	}
	if info, err := os.Lstat(s.pathOf(h)); err == nil {
		k.Used = info.ModTime().UTC()
	}
	slots, err := os.ReadDir(s.pathOf(h))
	for _, e := range slots {
		k.Places = append(k.Places, strings.ReplaceAll(e.Name(), "+", "/"))
	}
	slices.Sort(k.Places)
	s.mu.Lock()
	defer s.mu.Unlock()
	k.Sandbox = s.holder(h)
	return k, err
}

// goneMark is in the name of what was a home, and is being removed.
const goneMark = ".gone"

// Remove takes a home away, which no sandbox may have.
func (s *Shelf) Remove(h Home) error {
	if err := CheckName(h.Name); err != nil {
		return err
	}
	if err := s.hideHome(h); err != nil {
		return err
	}
	// With it goes what a daemon that died had left. Links are removed and not followed.
	dir := s.pathOf(Home{UID: h.UID})
	left, err := os.ReadDir(dir)
	for _, entry := range left {
		if strings.Contains(entry.Name(), goneMark) { // no home's name has a dot
			err = errors.Join(err, s.remove(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// hideHome hides a home from everybody, unless a sandbox has it.
func (s *Shelf) hideHome(h Home) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by := s.holder(h); by != "" {
		return fault.New(fault.ErrConflict, "the home %s is the sandbox %s's; end that first", h.Name, by)
	}
	if _, err := os.Lstat(s.pathOf(h)); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.ErrNotFound, "there is no home %q", h.Name)
	}
	for n := 0; ; n++ { // one of an earlier time may be there still
		gone := s.pathOf(h) + goneMark + strconv.Itoa(n)
		if _, err := os.Lstat(gone); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(s.pathOf(h), gone)
		}
	}
}

// Sandboxes are the ids of those that have a home.
func (s *Shelf) Sandboxes() map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]bool, len(s.taken))
	for sandbox := range s.taken {
		all[sandbox] = true
	}
	return all
}

// Limit is what a sandbox's home may have.
type Limit struct {
	Bytes int64 // 0: it is not looked at
	Seen  bool  // it may hold nothing of which it is not known what it takes
}

// Over tells of the sandboxes whose home has more than they may have, with what of it has no name any more and is held. Calls
// that keep files count from the second look on.
func (s *Shelf) Over(ctx context.Context, most func(sandbox string) Limit) map[string]Kept {
	s.mu.Lock()
	taken := maps.Clone(s.taken)
	s.mu.Unlock()
	over := map[string]Kept{}
	if len(taken) == 0 {
		return over
	}
	all := map[string]bool{}
	for _, h := range taken {
		all[filepath.Join(strconv.Itoa(h.UID), h.Name)] = true
	}
	s.looks.Lock()
	nameless, _ := readUnlinked(ctx, s.dir, all, s.waited) // as below
	s.looks.Unlock()
	for sandbox, h := range taken {
		// All that could be counted counts, also where the sandbox keeps something from being looked at.
		k, _ := s.measure(ctx, s.pathOf(h))
		more := nameless[filepath.Join(strconv.Itoa(h.UID), h.Name)]
		k.Bytes, k.Entries, k.Unseen = k.Bytes+more.bytes, k.Entries+more.files, more.unseen
		k.Unread = more.unread
		limit := most(sandbox)
		k.Large = k.Bytes > limit.Bytes || k.Entries > maxEntries || k.Past != ""
		if limit.Bytes > 0 && (k.Large || k.Unread || limit.Seen && k.Unseen != (Unseen{})) {
			k.Home = h
			over[sandbox] = k
		}
	}
	return over
}

// pathOf is where a home lies; without a name, all of its user's.
func (s *Shelf) pathOf(h Home) string {
	return filepath.Join(s.dir, strconv.Itoa(h.UID), h.Name)
}

// slotOf is a place's directory in a home. Places have no plus.
func slotOf(place string) string { return strings.ReplaceAll(place, "/", "+") }
