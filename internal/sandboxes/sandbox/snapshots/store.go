// Package snapshots is where copies of sandboxes lie on the disk.
//
// The directory of a snapshot never changes. An engine wrote and sealed its image; its attachments
// are small files of whoever made it; its manifest names all of it by digest. A cold snapshot has
// its image compressed.
//
//	<dir>/<id>/manifest.json   what it is; written last
//	<dir>/<id>/image/          the engine's files
//	<dir>/<id>/cold/           the same, each compressed, in place of image/
//	<dir>/<id>/NAME.json       attachments
//	<dir>/<id>/state.json      what may change: its record in the log, whether its name was taken over
//	<dir>/.new-*, .gone-*      drafts and what is being removed; swept at start
//
// A draft becomes a snapshot in one rename, after all of it is on the disk: when the power fails
// there is a whole snapshot or none. The digest of a snapshot is that of its manifest, which has
// those of the seal and of the attachments, so that no byte can change unnoticed. A user who may
// write the directory may write a whole other snapshot there: the log has the digest of the real
// one.
package snapshots

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// newPrefix and gonePrefix begin the names of what Sweep removes.
const (
	newPrefix  = ".new-"
	gonePrefix = ".gone-"
)

// How many snapshots are decompressed at one time, and how many of one owner wait for
// that.
const (
	warmAtOnce = 2
	warmLine   = 100
)

// namingAtOnce is of how many owners the snapshots may be given names at a time.
const namingAtOnce = 1 << 20

// Config is what a Store is made of. Dir and Log are needed; Dir must exist and
// belong to this user alone.
type Config struct {
	Dir  string
	Room Room
	// ColdAfter is how long a snapshot lies unused before it is compressed; 0:
	// none is.
	ColdAfter time.Duration
	Log       *slog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Store keeps the snapshots of an installation. Safe for concurrent use.
type Store struct {
	dir       string
	room      Room
	coldAfter time.Duration
	log       *slog.Logger
	now       func() time.Time
	put       func(dir string, state mutable) error // writeState
	warming   *fairqueue.Shares                     // of decompressions; after a snapshot's form, before mu
	naming    *fairqueue.Shares                     // a turn for each owner's names, on the disk and in known; before mu

	mu     sync.Mutex               // guards what follows; never held over I/O, which everybody would wait for
	known  map[string]*keptSnapshot // by id
	drafts map[string]drafted       // by id; also snapshots whose files are being removed
}

// drafted is what a draft may take, or what is being removed still takes.
type drafted struct {
	owner string
	bytes int64
}

// keptSnapshot is a snapshot that is there. Only manifest and digest may be read without
// the store's lock.
type keptSnapshot struct {
	manifest Manifest
	digest   string
	state    mutable
	disk     int64 // bytes that it takes
	cold     bool
	readers  int
	changing bool // its image is being compressed
	used     time.Time

	form sync.Mutex // held while the image changes its form; taken before the store's lock
}

// Snapshot is one of the list.
type Snapshot struct {
	Manifest
	Digest string
	Record uint64 // the number of its record in the log
	// Name is "" when another one has taken it over; Also are further names.
	Name string
	Also []string
	Cold bool
}

// Open makes a store, sweeps away what an earlier one left half done, and learns
// what is there. A directory that is no whole snapshot stays where it is and is
// told in the log: it may be what somebody looks for.
func Open(c Config) (*Store, error) {
	s := &Store{
		dir: c.Dir, room: c.Room, coldAfter: c.ColdAfter, log: c.Log, now: c.Now, put: writeState,
		warming: fairqueue.New(fairqueue.Fair(warmAtOnce, warmLine)), naming: fairqueue.New(fairqueue.Limits{All: namingAtOnce, Each: 1}), known: map[string]*keptSnapshot{}, drafts: map[string]drafted{},
	}
	if s.now == nil {
		s.now = time.Now
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the snapshots can't be listed")
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, newPrefix) || strings.HasPrefix(name, gonePrefix) {
			if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
				return nil, fault.Wrap(fault.ErrUnavailable, err, "the remains of a snapshot can't be removed")
			}
			continue
		}
		if err := s.learnSnapshot(name); err != nil {
			s.log.Error("a snapshot can't be used", "snapshot", name, "err", err)
		}
	}
	s.settleNames()
	return s, nil
}

func (s *Store) learnSnapshot(id string) error {
	dir := filepath.Join(s.dir, id)
	m, digest, err := readManifest(dir)
	if err != nil {
		return err
	}
	state, err := readState(dir)
	if err != nil {
		return err
	}
	if err := tidyDir(dir); err != nil {
		return err
	}
	_, err = os.Lstat(filepath.Join(dir, imageName))
	s.known[id] = &keptSnapshot{
		manifest: m, digest: digest, state: state, disk: diskUse(dir), used: s.now(),
		cold: errors.Is(err, fs.ErrNotExist),
	}
	return nil
}

// tidyDir removes what an interrupted compression left: what is half made has a dot
// before its name, and of two forms the plain one counts.
func tidyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, imageName)); err != nil {
		return nil //nolint:nilerr // there is the cold form only
	}
	return os.RemoveAll(filepath.Join(dir, coldName))
}

// List returns all snapshots, the oldest first.
func (s *Store) List() []Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Snapshot, 0, len(s.known))
	for _, k := range s.known {
		all = append(all, k.viewSnapshot())
	}
	slices.SortFunc(all, func(a, b Snapshot) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return all
}

// viewSnapshot needs the store's lock.
func (k *keptSnapshot) viewSnapshot() Snapshot {
	v := Snapshot{Manifest: k.manifest, Digest: k.digest, Record: k.state.Record, Name: k.manifest.Name, Also: slices.Clone(k.state.Also), Cold: k.cold}
	if k.state.Overtaken {
		v.Name = ""
	}
	return v
}

// Uses reports whether a snapshot lies on the template with this digest.
func (s *Store) Uses(template string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.known {
		if k.manifest.Template == template {
			return true
		}
	}
	return false
}

// findSnapshot returns a snapshot by id, or by name among those of an owner. The owner
// "" has all ids. Needs mu.
func (s *Store) findSnapshot(owner, ref string) (*keptSnapshot, error) {
	if k := s.known[ref]; k != nil && (owner == "" || k.manifest.Owner == owner) {
		return k, nil
	}
	for _, id := range slices.Sorted(maps.Keys(s.known)) {
		k := s.known[id]
		if ref != "" && k.manifest.Owner == owner && slices.Contains(k.listNames(), ref) {
			return k, nil
		}
	}
	return nil, fault.New(fault.ErrNotFound, "there is no snapshot %.80q", ref)
}

// Look returns a snapshot by id, or by name among those of an owner.
func (s *Store) Look(owner, ref string) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.findSnapshot(owner, ref)
	if err != nil {
		return Snapshot{}, err
	}
	return k.viewSnapshot(), nil
}

// Find returns a snapshot by id, or by name among those of an owner. One that is
// being read is a fault.ErrConflict: it can't be removed.
func (s *Store) Find(owner, ref string) (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.findSnapshot(owner, ref)
	if err != nil {
		return Snapshot{}, err
	}
	return k.viewSnapshot(), k.checkFree()
}

// checkFree refuses to have a snapshot removed that is being read. Needs the store's lock.
func (k *keptSnapshot) checkFree() error {
	if k.readers > 0 || k.changing {
		return fault.New(fault.ErrConflict, "the snapshot %s is being read; remove it when that has ended", k.manifest.ID)
	}
	return nil
}

// Remove removes a snapshot by id, or by name. One that is being read is a
// fault.ErrConflict. Nobody else waits while its files go; their room is to be had again when they have
// gone, and so is its id.
func (s *Store) Remove(owner, ref string) (Snapshot, error) {
	removed, gone, err := s.moveAside(owner, ref)
	if err != nil {
		return Snapshot{}, err
	}
	if err := errors.Join(atomicfile.SyncDir(s.dir), os.RemoveAll(gone)); err != nil {
		s.log.Error("the files of a removed snapshot are left", "snapshot", removed.ID, "err", err)
	}
	s.forgetDraft(removed.ID)
	return removed, nil
}

// moveAside forgets a snapshot and gives its files another name, gone, which Open removes if nobody else
// does.
func (s *Store) moveAside(owner, ref string) (removed Snapshot, gone string, err error) {
	k, removed, err := s.forgetSnapshot(owner, ref)
	if err != nil {
		return Snapshot{}, "", err
	}
	gone = filepath.Join(s.dir, gonePrefix+removed.ID)
	if err := os.Rename(filepath.Join(s.dir, removed.ID), gone); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.drafts, removed.ID)
		s.known[removed.ID] = k
		return Snapshot{}, "", fault.Wrap(fault.ErrUnavailable, err, "the snapshot %s can't be removed", removed.ID)
	}
	return removed, gone, nil
}

// forgetSnapshot has a snapshot be known no more. Its room and its id stay taken.
func (s *Store) forgetSnapshot(owner, ref string) (*keptSnapshot, Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.findSnapshot(owner, ref)
	if err == nil {
		err = k.checkFree()
	}
	if err != nil {
		return nil, Snapshot{}, err
	}
	delete(s.known, k.manifest.ID)
	s.drafts[k.manifest.ID] = drafted{k.manifest.Owner, k.disk}
	return k, k.viewSnapshot(), nil
}
