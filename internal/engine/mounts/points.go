package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/hostpath"
)

// Points makes, as the owner's, what mounts lie over in other mounts: in a sandbox's own
// files the container's runtime makes them, and in the host's nobody inside may. No link
// leads out of the outer mount.
func Points(spec engine.Spec) error {
	for _, inner := range spec.Mounts {
		outer, below := outerOf(spec.Mounts, inner)
		if outer.Source == "" {
			continue
		}
		if err := mountPoint(outer, below, inner, spec.Owner); err != nil {
			return fmt.Errorf("make a place for %s in %s: %w", inner.Destination, outer.Source, err)
		}
	}
	return nil
}

// outerOf is the innermost other mount that has the place of one, and where in it.
func outerOf(mounts []engine.Mount, inner engine.Mount) (outer engine.Mount, below string) {
	for _, m := range mounts {
		rest, ok := strings.CutPrefix(inner.Destination, m.Destination+"/")
		if ok && (below == "" || len(rest) <= len(below)) {
			outer, below = m, rest
		}
	}
	return outer, below
}

func mountPoint(outer engine.Mount, below string, inner engine.Mount, owner engine.Owner) error {
	opened, err := outer.Open()
	if err != nil {
		return err
	}
	defer opened.Close()
	root, err := opened.Root()
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a directory handle
	if _, err := root.Stat(below); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	isFile := false
	if inner.Source != "" {
		source, err := inner.Open()
		if err != nil {
			return err
		}
		source.Close()
		isFile = source.ID.Type == hostpath.File
	}
	var path string
	parts := strings.Split(below, "/")
	for i, part := range parts {
		path = filepath.Join(path, part)
		if i == len(parts)-1 && isFile {
			err = root.WriteFile(path, nil, 0o644)
		} else if err = root.Mkdir(path, 0o755); errors.Is(err, os.ErrExist) {
			continue
		}
		if err == nil {
			err = root.Lchown(path, owner.HostUID, owner.HostGID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
