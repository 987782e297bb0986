package gvisor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Files of a snapshot, beside those that runsc writes.
const (
	recipeName = "recipe.json"
	upperName  = "upper.tar" // what was written to the root, with what was deleted
)

const (
	recipeVersion = 1
	maxRecipe     = 1 << 20
)

// snapshotRecipe says what a snapshot needs to be restored.
type snapshotRecipe struct {
	Version  int             `json:"version"`
	Contents engine.Contents `json:"contents"`
	Spec     engine.Spec     `json:"spec"` // of the source, complete
	// Agent is the sha256 of PID 1's file on a mount: pages of it that were never
	// written to are not in the image, and are read from the file again. "" for one
	// in the root, which never changes.
	Agent string `json:"agent,omitempty"`
}

// saveSpec keeps the spec with the bundle, for snapshots.
func (b bundle) saveSpec(spec engine.Spec) error {
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	return os.WriteFile(b.recipe(), data, 0o600)
}

// recipe is that of a snapshot of the instance.
func (i *Instance) recipe(contents engine.Contents) (snapshotRecipe, error) {
	r := snapshotRecipe{Version: recipeVersion, Contents: contents}
	data, err := os.ReadFile(bundle{dir: i.engine.instanceDir(i.id)}.recipe())
	if err != nil {
		return r, fault.Wrap(fault.ErrUnavailable, err, "sandbox %s can't be snapshotted: what it was made of is not on record, so it was made by an older version", i.id)
	}
	if err := json.Unmarshal(data, &r.Spec); err != nil {
		return r, err
	}
	r.Agent, err = i.engine.agentDigest(r.Spec)
	return r, err
}

func (r snapshotRecipe) writeRecipe(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recipeName), data, 0o600)
}

// readRecipe reads that of a verified image.
func readRecipe(dir string) (snapshotRecipe, error) {
	var r snapshotRecipe
	path := filepath.Join(dir, recipeName)
	if info, err := os.Lstat(path); err != nil || info.Size() > maxRecipe {
		return r, fault.New(fault.ErrConflict, "the image at %s is not a snapshot of this engine: it has no %s", dir, recipeName)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&r)
	}
	if err != nil {
		return r, fault.Wrap(fault.ErrConflict, err, "the snapshot at %s can't be read", dir)
	}
	if r.Version != recipeVersion {
		return r, fault.New(fault.ErrConflict, "the snapshot at %s is of version %d; this is for version %d", dir, r.Version, recipeVersion)
	}
	return r, nil
}

// agentDigest is the digest of PID 1's file, if that is on a mount.
func (e *Engine) agentDigest(spec engine.Spec) (string, error) {
	path := ""
	for _, m := range spec.Mounts { // of several, the last lies on top
		if rest, ok := strings.CutPrefix(spec.Init[0], m.Destination+"/"); ok && m.Source != "" {
			path = filepath.Join(m.Source, rest)
		}
	}
	if path == "" {
		return "", nil
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fault.Wrap(fault.ErrInvalid, err, "the sandbox's agent can't be read")
	}
	return e.images.File(path)
}

// checkSnapshot tells whether an instance of spec can be started from the snapshot. The state in
// memory can't be changed from outside: its mounts and the size of its disk. Files alone need the
// same root under them.
func (e *Engine) checkSnapshot(r snapshotRecipe, spec engine.Spec) error {
	old := r.Spec
	no := func(format string, args ...any) error {
		return fault.New(fault.ErrConflict, "the snapshot of sandbox %s does not fit sandbox %s: %s", old.ID, spec.ID, fmt.Sprintf(format, args...))
	}
	if old.Root != spec.Root {
		return no("it is on the root %s, not on %s", old.Root.Path, spec.Root.Path)
	}
	if r.Contents == engine.ContentsFiles {
		return nil
	}
	if !slices.Equal(old.Init, spec.Init) {
		return no("its PID 1 is %q, not %q", old.Init, spec.Init)
	}
	if old.Owner != spec.Owner {
		return no("it is owned by %+v, not by %+v", old.Owner, spec.Owner)
	}
	if !slices.EqualFunc(old.Mounts, spec.Mounts, sameMount) {
		return no("it has other mounts")
	}
	if spec.Limits.DiskBytes < old.Limits.DiskBytes {
		return no("its disk has %d bytes and can't be made smaller than that, to %d", old.Limits.DiskBytes, spec.Limits.DiskBytes)
	}
	agent, err := e.agentDigest(spec)
	if err != nil {
		return err
	}
	if agent != r.Agent {
		return no("the agent in it is of another version; restore its files only")
	}
	return nil
}

// sameMount ignores where a mount comes from, and how large one in memory is:
// that stays what it was.
func sameMount(a, b engine.Mount) bool {
	return a.Destination == b.Destination && a.ReadOnly == b.ReadOnly && a.Mode == b.Mode && (a.Source == "") == (b.Source == "")
}
