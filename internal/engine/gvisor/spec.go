package gvisor

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// complete checks a spec whole and fills in the limits that it leaves open.
func complete(spec engine.Spec) (engine.Spec, error) {
	if err := checkID(spec.ID); err != nil {
		return spec, err
	}
	if len(spec.Init) == 0 || !filepath.IsAbs(spec.Init[0]) {
		return spec, fault.Invalid("sandbox %s: PID 1 must be named by an absolute path, not %q", spec.ID, spec.Init)
	}
	if err := checkOwner(spec.Owner); err != nil {
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
	l.CPU, l.MemoryBytes = or(l.CPU, defaultCPU), or(l.MemoryBytes, defaultMemory)
	l.DiskBytes, l.Pids = or(l.DiskBytes, defaultDisk), or(l.Pids, defaultPids)
	return spec, nil
}

func or[T int | int64 | float64](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}

func checkRoot(root engine.Root) error {
	if !cleanPath(root.Path) {
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
	if !cleanPath(m.Destination) || m.Destination == "/" {
		return fault.Invalid("the mount destination %q must be a clean absolute path other than /", m.Destination)
	}
	if m.Source == "" {
		if m.SizeBytes <= 0 {
			return fault.Invalid("the memory file system at %s needs a size", m.Destination)
		}
		return nil
	}
	if !cleanPath(m.Source) {
		return fault.Invalid("the mount source %q must be a clean absolute path", m.Source)
	}
	if _, err := os.Stat(m.Source); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the mount source %s can't be read", m.Source)
	}
	return nil
}

// cleanPath also keeps a comma out, which separates runsc's options.
func cleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && !strings.ContainsAny(path, "\x00\n")
}
