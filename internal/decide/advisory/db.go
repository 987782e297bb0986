package advisory

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Options of Open; the zero value is right for the daemon.
type Options struct {
	// Clock gives the time of imports; nil is time.Now.
	Clock func() time.Time
	// Trees are where agents may have left links, so that none is followed there; nil: nowhere.
	Trees func() []hostpath.Tree

	disk   importDisk // nil is the real one
	limits limits
}

// DB is the imported facts in one directory: a manifest that lists the sources,
// and for each source one file, named after its digest.
//
// Guarantees:
//   - An import counts when the manifest has been replaced, and not before;
//     whatever goes wrong until then leaves the generation that was there.
//   - What is answered was checked, every byte, against what was imported.
//   - Damage answers with an error, never with fewer facts.
//
// One process writes a directory: the daemon.
type DB struct {
	dir       string
	options   Options
	current   atomic.Pointer[generation]
	writing   sync.Mutex // held by whoever replaces the manifest
	receiving sync.Mutex // held by whoever uploads
	reviews   sync.Mutex // held by whoever looks through the log
}

var _ Source = (*DB)(nil)

// Open reads the facts in dir, which need not be there yet. It always returns a
// DB: one that is damaged refuses to answer and can be repaired by importing or
// removing; Damage says so.
func Open(dir string, options Options) *DB {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	if options.disk == nil {
		options.disk = osDisk{}
	}
	if options.limits == (limits{}) {
		options.limits = defaultLimits()
	}
	db := &DB{dir: dir, options: options}
	db.current.Store(loadGeneration(dir))
	return db
}

// Facts implements Source. The error is fault.ErrUnavailable, and says what to
// do.
func (db *DB) Facts(pkg pkgref.Ref) (Facts, error) { return db.current.Load().factsOf(pkg) }

// Vulnerabilities implements Source; its errors are those of Facts.
func (db *DB) Vulnerabilities(pkg pkgref.Ref) (Vulnerabilities, error) {
	return db.current.Load().vulnerabilitiesOf(pkg)
}

// Generation implements Source.
func (db *DB) Generation() string { return db.current.Load().name }

var _ Coverage = (*DB)(nil)

// CoversMalware implements Coverage.
func (db *DB) CoversMalware(of pkgref.Ecosystem) bool {
	for _, s := range db.current.Load().manifest.Sources {
		if s.Kind != KindPopular && s.Packages[of] > 0 {
			return true
		}
	}
	return false
}

// Damage is why the database can't answer; nil if it can.
func (db *DB) Damage() error { return db.current.Load().damage }

// Status lists the sources.
func (db *DB) Status() api.Advisories {
	g := db.current.Load()
	status := api.Advisories{Generation: g.name, Sources: []api.AdvisorySource{}, Shipped: []api.AdvisorySource{}}
	if g.damage != nil {
		status.Damage = g.damage.Error()
	}
	listed := map[pkgref.Ecosystem]bool{}
	for _, s := range g.manifest.Sources {
		status.Sources = append(status.Sources, s.viewSource())
		for e := range s.Packages {
			listed[e] = listed[e] || s.Kind == KindPopular
		}
	}
	for _, e := range pkgref.Ecosystems() {
		if !listed[e] {
			status.Shipped = append(status.Shipped, api.AdvisorySource{
				Label: ShippedLabel, Kind: string(KindPopular), Packages: map[string]int{string(e): len(shippedNames(e))},
			})
		}
	}
	return status
}

func (s source) viewSource() api.AdvisorySource {
	v := api.AdvisorySource{
		Label: s.Label, Kind: string(s.Kind), Path: s.Path, Imported: s.Imported, SHA256: s.SHA256, Bytes: s.Bytes,
		Packages: map[string]int{}, Advisories: s.Advisories, Burnt: s.Burnt, LeftOut: s.LeftOut,
	}
	for e, n := range s.Packages {
		v.Packages[string(e)] = n
	}
	v.Vulnerabilities = s.Vulnerabilities
	if len(s.Vulnerable) > 0 {
		v.Vulnerable = map[string]int{}
	}
	for e, n := range s.Vulnerable {
		v.Vulnerable[string(e)] = n
	}
	return v
}

// Remove forgets what a label imported; fault.ErrNotFound if it imported
// nothing.
func (db *DB) Remove(label string) error {
	if !db.writing.TryLock() {
		return errBusy()
	}
	defer db.writing.Unlock()
	m, err := readManifest(db.dir)
	if err != nil {
		return repairAll(err)
	}
	if _, known := m.findSource(label); !known {
		return fault.New(fault.ErrNotFound, "nothing was imported as %q", text.Shorten(label, maxQuoted))
	}
	return db.commit(m.withoutSource(label))
}

// RemoveAll forgets all imports. It repairs every damage, at their cost.
func (db *DB) RemoveAll() error {
	if !db.writing.TryLock() {
		return errBusy()
	}
	defer db.writing.Unlock()
	if err := db.makeDirectory(); err != nil {
		return err
	}
	return db.commit(manifest{})
}

func errBusy() error {
	return fault.New(fault.ErrConflict, "another import is at work; wait for its end")
}

// prepareDir makes the directory and, where nothing was imported yet, an empty
// manifest: from then on a file without a manifest is a loss. The caller holds
// db.writing.
func (db *DB) prepareDir() (manifest, error) {
	if err := db.makeDirectory(); err != nil {
		return manifest{}, err
	}
	m, err := readManifest(db.dir)
	if err != nil {
		return manifest{}, repairAll(err)
	}
	if _, err := os.Lstat(filepath.Join(db.dir, manifestName)); errors.Is(err, os.ErrNotExist) {
		return m, db.writeManifest(m)
	}
	return m, nil
}

func (db *DB) makeDirectory() error {
	if err := os.MkdirAll(db.dir, 0o700); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the advisory database's directory can't be made")
	}
	return nil
}

func (db *DB) writeManifest(m manifest) error {
	data, err := m.encode()
	if err != nil {
		return err
	}
	if err := replace(db.options.disk, filepath.Join(db.dir, manifestName), data); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the advisory database can't be written")
	}
	return nil
}

// commit makes m the list of sources, answers by it from now on, and takes away
// what it does not list. The caller holds db.writing.
func (db *DB) commit(m manifest) error {
	if err := db.writeManifest(m); err != nil {
		// It may have reached the disk or not: what is there counts.
		db.current.Store(loadGeneration(db.dir))
		return err
	}
	db.current.Store(loadGeneration(db.dir))
	for _, left := range orphans(db.dir, m) {
		_ = db.options.disk.removeFile(filepath.Join(db.dir, left)) // the next one takes it away
	}
	return nil
}
