package template

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Build makes a template and publishes it; report (may be nil) hears of each
// step, one at a time. If another process is building the same name, its
// result is waited for and returned. Whatever fails, the template that was
// there before stays.
func (s *Store) Build(ctx context.Context, name string, report func(Progress)) (Template, error) {
	if err := s.checkName(name); err != nil {
		return Template{}, err
	}
	if report == nil {
		report = func(Progress) {}
	}
	before, _ := s.currentGeneration(name) // none, or damaged: to be replaced
	waited := false
	lock, err := s.lockName(ctx, name, func() {
		waited = true
		report(Progress{Step: "waiting", Detail: "another process is building this template"})
	})
	if err != nil {
		return Template{}, err
	}
	defer lock.releaseLock()
	if waited {
		if now, err := s.currentGeneration(name); err == nil && now.Digest != before.Digest {
			return now, nil
		}
	}
	return s.buildLocked(ctx, name, report)
}

// buildLocked needs the name's lock.
func (s *Store) buildLocked(ctx context.Context, name string, report func(Progress)) (Template, error) {
	s.clearStale(ctx, name)
	place, err := os.MkdirTemp(s.dir, ".building-"+name+"-")
	if err != nil {
		return Template{}, fault.Wrap(fault.ErrUnavailable, err, "the templates' folder %s cannot be written", s.dir)
	}
	// Also when cancelled: what is half-made goes.
	defer func() { _ = s.removeTree(context.WithoutCancel(ctx), place) }()
	made := filepath.Join(place, "made")
	if err := os.Mkdir(made, 0o755); err != nil { //nolint:gosec // engines read templates as another user
		return Template{}, fault.Wrap(fault.ErrUnavailable, err, "the templates' folder %s cannot be written", s.dir)
	}
	var t Template
	switch name {
	case NameHost:
		t, err = s.buildHost(ctx, made)
	default:
		l, _ := layoutOf(name) // the name was checked
		b := debianBuild{store: s, layout: l, place: place, made: made, report: report}
		t, err = b.runBuild(ctx)
	}
	if err != nil {
		return Template{}, err
	}
	return s.publishGeneration(ctx, t, made)
}

// publishGeneration gives a finished generation its name and makes it the current one.
func (s *Store) publishGeneration(ctx context.Context, t Template, made string) (Template, error) {
	raw, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return Template{}, err
	}
	if err := atomicfile.Replace(filepath.Join(made, "template.json"), raw, 0o644); err != nil {
		return Template{}, diskFault(err, s.dir)
	}
	home := filepath.Join(s.dir, t.Name)
	if err := os.MkdirAll(home, 0o755); err != nil { //nolint:gosec // engines read templates as another user
		return Template{}, diskFault(err, s.dir)
	}
	generation := strings.TrimPrefix(t.Digest, "sha256:")[:16]
	target := filepath.Join(home, generation)
	if err := s.placeGeneration(ctx, made, target); err != nil {
		return Template{}, diskFault(err, s.dir)
	}
	if err := pointCurrent(home, generation); err != nil {
		return Template{}, diskFault(err, s.dir)
	}
	s.pruneGenerations(ctx, t.Name, t.Digest)
	return s.currentGeneration(t.Name)
}

// placeGeneration moves a finished generation to its name. Where the same root is there
// already, in use perhaps, only what is written about it is renewed.
func (s *Store) placeGeneration(ctx context.Context, made, target string) error {
	if _, err := readGeneration(target); err != nil {
		// Not there, or damaged: a damaged one can be in nobody's use.
		if err := s.removeTree(ctx, target); err != nil {
			return err
		}
		return os.Rename(made, target)
	}
	for _, file := range []string{"ledger.json", "template.json"} {
		err := os.Rename(filepath.Join(made, file), filepath.Join(target, file))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the host template has no ledger
			return err
		}
	}
	return nil
}

// pointCurrent turns NAME/current to a generation, in one step.
func pointCurrent(home, generation string) error {
	next := filepath.Join(home, ".next")
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(generation, next); err != nil {
		return err
	}
	if err := os.Rename(next, filepath.Join(home, "current")); err != nil {
		return err
	}
	return syncFile(home)
}

// pruneGenerations removes older generations that no sandbox uses, if that is known.
func (s *Store) pruneGenerations(ctx context.Context, name, keep string) {
	if s.opt.InUse == nil {
		return
	}
	all, err := s.generations(name)
	if err != nil {
		return // what can't be listed is not removed; nothing depends on it
	}
	for _, t := range all {
		if t.Digest != keep && !s.opt.InUse(t.Digest) {
			_ = s.removeTree(ctx, filepath.Dir(t.Root.Path))
		}
	}
}

// clearStale removes what killed builds left. The caller has the lock, so no
// such folder is anybody's.
func (s *Store) clearStale(ctx context.Context, name string) {
	stale, _ := filepath.Glob(filepath.Join(s.dir, ".building-"+name+"-*"))
	open, _ := filepath.Glob(filepath.Join(os.TempDir(), s.openPattern(name)))
	stale = append(stale, open...)
	for _, dir := range stale {
		_ = s.removeTree(ctx, dir)
	}
}

// syncFile makes a file, or a folder's names, survive a crash of the host.
func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return f.Sync()
}

// diskFault says what a failure to write means.
func diskFault(err error, dir string) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fault.Wrap(fault.ErrUnavailable, err, "the disk of %s is full%s", dir, freeSpace(dir))
	}
	return fault.Wrap(fault.ErrUnavailable, err, "the template cannot be stored in %s", dir)
}

// freeSpace says how much is left, as part of a sentence.
func freeSpace(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return ""
	}
	return fmt.Sprintf(" (%d MB free; a build needs about 3000)", st.Bavail*uint64(st.Bsize)>>20)
}
