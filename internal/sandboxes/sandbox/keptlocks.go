package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/lockfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// keptLocks are the lockfiles that sandboxes were made with, in files by their digests. Those of the
// host's own users stay: reports about runs that have ended compare with them. A token's lie beside a
// mark, and go once no sandbox and no snapshot has them, since nothing else bounds how many it sends.
// Safe for concurrent use.
type keptLocks struct {
	dir   string
	files *fairqueue.Shares // a turn for each digest: whoever writes or removes its files has it; before mu

	mu       sync.Mutex        // guards what follows; never held over I/O
	held     map[string]int    // digests that somebody needs of whom a sweep may not hear
	sweeps   int               // that are under way
	swept    uint64            // that have begun, ever
	released map[string]uint64 // digests that were let go while sweeps were under way: how many had begun then
}

// The ends of names: a lockfile's, and that of the mark beside one which goes with the last that has it.
// A daemon that does not know marks keeps all.
const (
	lockEnd   = ".lock.json"
	passesEnd = ".lock.passes"
)

// mostTurns is how many digests' files may be written or removed at a time.
const mostTurns = 1 << 20

func newKeptLocks(dir string) *keptLocks {
	return &keptLocks{
		dir: dir, files: fairqueue.New(fairqueue.Limits{All: mostTurns, Each: 1}), held: map[string]int{}, released: map[string]uint64{},
	}
}

// readLock reads a run's lockfiles; nil for a run without.
func readLock(given *lockfile.Given) (*lockfile.Set, error) {
	if given == nil {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	return given.Set()
}

// keepLock stores the lockfiles as an owner gave them under the set's digest, and holds them until
// release. The owner "" is the host's.
func (l *keptLocks) keepLock(owner string, given *lockfile.Given, set *lockfile.Set) (release func(), err error) {
	if set == nil {
		return func() {}, nil
	}
	release = l.holdLock(set.Digest()) // before they are written, so that no sweep takes them in between
	leave, err := l.takeFiles(set.Digest())
	if err == nil {
		err = l.writeLocks(owner, given, set.Digest())
		leave()
	}
	if err != nil {
		release()
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the lockfiles can't be kept in %s", l.dir)
	}
	return release, nil
}

// takeFiles waits for the turn to write or remove the files of a digest. Its holder does so only.
func (l *keptLocks) takeFiles(digest string) (leave func(), err error) {
	_, leave, err = l.files.Take(fairqueue.For(context.Background(), digest))
	return leave, err
}

// writeLocks needs the turn of the digest. The mark comes first: after a crash in between there is at most a mark too many.
func (l *keptLocks) writeLocks(owner string, given *lockfile.Given, digest string) error {
	path, mark := l.lockPath(digest), l.markPath(digest)
	_, err := os.Stat(path)
	switch there := err == nil; {
	case there && owner == "":
		return removed(mark) // the host's own has it from now on
	case there:
		return nil
	case owner != "":
		err = atomicfile.Replace(mark, nil, 0o600)
	default:
		err = removed(mark)
	}
	if err != nil {
		return err
	}
	data, err := given.Encode()
	if err != nil {
		return err
	}
	return atomicfile.Replace(path, data, 0o600)
}

// removed removes a file; that there is none is as good.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// holdLock keeps the lockfiles of a digest until release; of "" it does nothing.
func (l *keptLocks) holdLock(digest string) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[digest]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.held[digest]--; l.held[digest] == 0 {
			delete(l.held, digest)
		}
		if l.sweeps > 0 {
			l.released[digest] = l.swept
		}
	})
}

// beginSweep has what is let go from now on stay until over: who needed it may have told those of whom
// the sweep hears too late for that.
func (l *keptLocks) beginSweep() (sweep uint64, over func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweeps++
	l.swept++
	return l.swept, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.sweeps--; l.sweeps == 0 {
			clear(l.released)
		}
	}
}

// needed tells whether somebody holds a digest, or has since a sweep began.
func (l *keptLocks) needed(digest string, sweep uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[digest] > 0 || l.released[digest] >= sweep
}

// sweepLocks removes tokens' lockfiles that nobody holds and named does not have; none if it fails.
// The next sweep sees what comes or goes while named reads. Nobody else waits for any of it but
// whoever keeps the same lockfiles at that moment.
func (l *keptLocks) sweepLocks(named func() (map[string]bool, error)) error {
	sweep, over := l.beginSweep()
	defer over()
	marks, err := filepath.Glob(filepath.Join(l.dir, "*"+passesEnd))
	if err != nil || len(marks) == 0 {
		return err
	}
	has, err := named()
	if err != nil {
		return err
	}
	var errs []error
	for _, mark := range marks {
		digest := "sha256:" + strings.TrimSuffix(filepath.Base(mark), passesEnd)
		if !has[digest] {
			errs = append(errs, l.removeLock(digest, sweep))
		}
	}
	return errors.Join(errs...)
}

// removeLock removes a token's lockfiles, unless somebody needs them.
func (l *keptLocks) removeLock(digest string, sweep uint64) error {
	leave, err := l.takeFiles(digest)
	if err != nil {
		return err
	}
	defer leave()
	mark := l.markPath(digest)
	if _, err := os.Stat(mark); errors.Is(err, fs.ErrNotExist) { // the host's own has them by now
		return nil
	}
	if l.needed(digest, sweep) {
		return nil
	}
	if err := removed(l.lockPath(digest)); err != nil {
		return err
	}
	return removed(mark) // last: without it the file would stay
}

func (l *keptLocks) lockPath(digest string) string {
	return filepath.Join(l.dir, strings.TrimPrefix(digest, "sha256:")+lockEnd)
}

func (l *keptLocks) markPath(digest string) string {
	return filepath.Join(l.dir, strings.TrimPrefix(digest, "sha256:")+passesEnd)
}

// readLocks reads the kept lockfiles of a digest; nil for "".
func (l *keptLocks) readLocks(digest string) (*lockfile.Set, error) {
	if digest == "" {
		return nil, nil //nolint:nilnil // no lockfiles is a good answer
	}
	data, err := os.ReadFile(l.lockPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the lockfiles %s are not kept any more", digest)
	}
	set, err := lockfile.Decode(data)
	if err != nil {
		return nil, err
	}
	if set.Digest() != digest {
		return nil, fault.New(fault.ErrConflict, "the kept lockfiles %s have another digest now", digest)
	}
	return set, nil
}

// givenLock reads the kept lockfiles of a digest as they were given.
func (l *keptLocks) givenLock(digest string) (*lockfile.Given, error) {
	if _, err := l.readLocks(digest); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(l.lockPath(digest))
	if err != nil {
		return nil, fault.Wrap(fault.ErrNotFound, err, "the lockfiles %s are not kept any more", digest)
	}
	given := &lockfile.Given{}
	return given, json.Unmarshal(data, given)
}
