package template

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// The names of the templates that a Store knows.
const (
	NameDebian = "debian"
	NameDev    = "dev" // debian, and what a developer works with
	NameHost   = "host"
	// NameInterpreter is debian with what cells of the code interpreter run on.
	NameInterpreter = "code-interpreter"
	// NameAuto stands for the template of who names none: debian where it is built,
	// else host.
	NameAuto = "auto"
	// NameBase is a debian without the tools that come from registries: built
	// only to ask its pip which index it uses, where nobody else knows.
	NameBase = "base-debian"
)

// Options of a Store; the zero value is right for an installation.
type Options struct {
	// HostRoot is where the host template and the debian builder look for the
	// host's files; "/" if empty.
	HostRoot string
	// Sources replaces the host's own apt sources for the debian template:
	// one-line entries ("deb [options] URI SUITE COMPONENT...").
	Sources []string
	// InUse says whether a running sandbox uses a digest. Without it nothing
	// that was once published is removed, except by Remove.
	InUse func(digest string) bool
	// Fetcher brings the tools of the debian template; without it one is built
	// only from tools that were fetched before.
	Fetcher Fetcher
	// FindTool is the path of a program of the distribution's, "" if it is not installed; nil: executable.System.
	FindTool func(name string) string
	// Writable are the directories in which sandboxes may write, or could: FindTool's default finds nothing there. nil: there are
	// none.
	Writable func() []hostpath.Tree
}

// Known is a template that can be had here, built or not.
type Known struct {
	Name  string
	About string
}

// Store keeps templates in a folder, one sub-folder per name:
//
//	NAME/current -> GENERATION        the one that Get returns
//	NAME/GENERATION/template.json     with rootfs.erofs or root/, and ledger.json
//	.building-NAME-*                  a build's workplace; stale without the lock
//	.lock-NAME                        held by whoever builds NAME
//	.tools/FILE                       what was fetched or compiled for builds, with its origin
//	.debs-NAME/FILE                   the distribution's packages in it, for the next build
//	.NAME.log                         the output and the steps of its last build
//
// A generation is complete from the moment it has its name, and its root is never
// written again; a build that gives the same root renews what is written about it. Safe for concurrent use, also by several processes.
type Store struct {
	dir  string
	opt  Options
	pins func(arch string) []pin

	// grace is how long a tool that was told to end may take.
	grace time.Duration
}

// NewStore returns a Store in dir, which is made when first needed.
func NewStore(dir string, opt Options) *Store {
	if opt.HostRoot == "" {
		opt.HostRoot = "/"
	}
	if opt.FindTool == nil {
		opt.FindTool = func(name string) string { return executable.System(name, opt.Writable) }
	}
	return &Store{dir: dir, opt: opt, pins: pinned, grace: 30 * time.Second}
}

func (s *Store) findTool(name string) string { return s.opt.FindTool(name) }

// Known lists the templates that this Store can build.
func (s *Store) Known() []Known {
	var all []Known
	for _, l := range layouts() {
		if l.about != "" {
			all = append(all, Known{l.name, l.about})
		}
	}
	return append(all, Known{NameHost, "this machine's own programs, read-only; nothing to build"})
}

// Get returns a template that is ready to use. The host template is made, or
// made anew when the host has changed, on the way.
func (s *Store) Get(ctx context.Context, name string) (Template, error) {
	name = s.Meant(name)
	if err := s.checkName(name); err != nil {
		return Template{}, err
	}
	if name == NameHost {
		return s.hostTemplate(ctx)
	}
	t, err := s.currentGeneration(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Template{}, fault.New(fault.ErrConflict, "template %s is not built yet: run cofferdam template build %s", name, name)
	}
	return t, err
}

// Meant is the template that a name stands for: for NameAuto the one to use now, for
// any other the name itself.
func (s *Store) Meant(name string) string {
	if name != NameAuto {
		return name
	}
	if _, err := s.currentGeneration(NameDebian); errors.Is(err, fs.ErrNotExist) {
		return NameHost
	}
	return NameDebian // a damaged one, too: what is wrong is to be said, not passed over
}

// List returns the templates that are ready to use; why another is not, Get
// says.
func (s *Store) List(ctx context.Context) ([]Template, error) {
	var ready []Template
	for _, known := range s.Known() {
		t, err := s.Get(ctx, known.Name)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			ready = append(ready, t)
		}
	}
	return ready, nil
}

// Remove deletes all generations of a template; fault.ErrConflict if a running
// sandbox uses one.
func (s *Store) Remove(ctx context.Context, name string) error {
	if err := s.checkName(name); err != nil {
		return err
	}
	lock, err := s.lockName(ctx, name, nil)
	if err != nil {
		return err
	}
	defer lock.releaseLock()
	generations, err := s.generations(name)
	if err != nil {
		return err
	}
	if len(generations) == 0 {
		return fault.New(fault.ErrNotFound, "template %s is not built, so there is nothing to remove", name)
	}
	for _, t := range generations {
		if s.opt.InUse != nil && s.opt.InUse(t.Digest) {
			return fault.New(fault.ErrConflict, "template %s is in use by a sandbox: destroy that first", name)
		}
	}
	// First out of Get's sight, in one step.
	doomed, err := os.MkdirTemp(s.dir, ".building-"+name+"-")
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "template %s cannot be removed from %s", name, s.dir)
	}
	if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(doomed, "removed")); err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "template %s cannot be removed", name)
	}
	return s.removeTree(ctx, doomed)
}

func (s *Store) checkName(name string) error {
	var names []string
	for _, k := range s.Known() {
		names = append(names, k.Name)
	}
	if slices.Contains(names, name) || name == NameBase {
		return nil
	}
	return fault.New(fault.ErrNotFound, "there is no template %q; known are %s", name, strings.Join(names, ", "))
}

// currentGeneration reads the published generation; fs.ErrNotExist if there is none.
func (s *Store) currentGeneration(name string) (Template, error) {
	return readGeneration(filepath.Join(s.dir, name, "current"))
}

// generations returns all complete generations of a name.
func (s *Store) generations(name string) ([]Template, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the templates in %s cannot be listed", s.dir)
	}
	var all []Template
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if t, err := readGeneration(filepath.Join(s.dir, name, e.Name())); err == nil {
			all = append(all, t)
		}
	}
	return all, nil
}

// readGeneration reads and checks a generation's folder. The root's path is
// kept relative in the file, so that the state directory can be moved.
func readGeneration(dir string) (Template, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Template{}, err
	}
	raw, err := os.ReadFile(filepath.Join(dir, "template.json"))
	if err != nil {
		return Template{}, err
	}
	var t Template
	if err := json.Unmarshal(raw, &t); err != nil {
		return Template{}, fault.Wrap(fault.ErrUnavailable, err, "%s/template.json is damaged: build the template again", dir)
	}
	t.Root.Path = filepath.Join(dir, t.Root.Path)
	info, err := os.Stat(t.Root.Path)
	if err != nil {
		// Not wrapped: a caller must not take this for "not built".
		return Template{}, fault.New(fault.ErrUnavailable, "template %s has lost its root filesystem (%v): build it again", t.Name, err)
	}
	if t.Root.Kind == engine.RootImage && info.Size() != t.Bytes {
		return Template{}, fault.New(fault.ErrUnavailable, "the image of template %s has %d bytes instead of %d: build it again", t.Name, info.Size(), t.Bytes)
	}
	return t, nil
}
