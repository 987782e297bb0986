package hostproc

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

// Limits where a Spec has none.
const (
	defaultCPU    = 2
	defaultMemory = 2 << 30
	defaultDisk   = 4 << 30
	defaultPids   = 256
)

// Complete checks a spec whole and fills in the limits that it leaves open.
func Complete(spec engine.Spec) (engine.Spec, error) {
	if err := CheckID(spec.ID); err != nil {
		return spec, err
	}
	if len(spec.Init) == 0 || !filepath.IsAbs(spec.Init[0]) {
		return spec, fault.Invalid("sandbox %s: PID 1 must be named by an absolute path, not %q", spec.ID, spec.Init)
	}
	if err := identity.CheckOwner(spec.Owner); err != nil {
		return spec, err
	}
	if err := checkRoot(spec.Root); err != nil {
		return spec, err
	}
	for _, m := range spec.Mounts {
		if err := checkMount(m); err != nil {
			return spec, err
		}
	}
	l := &spec.Limits
	if l.CPU < 0 || l.MemoryBytes < 0 || l.DiskBytes < 0 || l.Pids < 0 {
		return spec, fault.Invalid("sandbox %s: a limit is negative: %+v", spec.ID, *l)
	}
	l.CPU, l.MemoryBytes = orElse(l.CPU, defaultCPU), orElse(l.MemoryBytes, defaultMemory)
	l.DiskBytes, l.Pids = orElse(l.DiskBytes, defaultDisk), orElse(l.Pids, defaultPids)
	return spec, nil
}

func orElse[T int | int64 | float64](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}

func checkRoot(root engine.Root) error {
	if !isCleanPath(root.Path) {
		return fault.Invalid("the root %q must be a clean absolute path", root.Path)
	}
	info, err := os.Stat(root.Path)
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the root %s can't be read", root.Path)
	}
	switch root.Kind {
	case engine.RootDir:
		if !info.IsDir() {
			return fault.Invalid("the root %s is not a directory", root.Path)
		}
	case engine.RootImage:
		if !info.Mode().IsRegular() {
			return fault.Invalid("the root %s is not an image file", root.Path)
		}
	default:
		return fault.Invalid("the root kind %q is unknown; there are %q and %q", root.Kind, engine.RootDir, engine.RootImage)
	}
	return nil
}

func checkMount(m engine.Mount) error {
	if !isCleanPath(m.Destination) || m.Destination == "/" {
		return fault.Invalid("the mount destination %q must be a clean absolute path other than /", m.Destination)
	}
	if m.Source == "" {
		if m.SizeBytes <= 0 {
			return fault.Invalid("the memory file system at %s needs a size", m.Destination)
		}
		return nil
	}
	if !isCleanPath(m.Source) {
		return fault.Invalid("the mount source %q must be a clean absolute path", m.Source)
	}
	source, err := m.Open()
	if _, other := errors.AsType[*hostpath.TypeError](err); other {
		return nil // who mounts it says why not
	}
	if err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the mount source %s can't be read", m.Source)
	}
	source.Close()
	return nil
}

// isCleanPath tells whether a path is absolute and as short as can be.
func isCleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.ContainsAny(path, "\x00\n")
}

// CheckID refuses what can't be an instance's id.
func CheckID(id string) error {
	bad := strings.ContainsFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
	if id == "" || len(id) > 64 || bad {
		return fault.Invalid("the sandbox id %q must be 1 to 64 of a-z, 0-9 and -", id)
	}
	return nil
}
