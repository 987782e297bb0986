package microvm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// Files of an image.
const (
	recipeName  = "recipe.json"
	machineName = "machine" // memory and devices, as the monitor wrote them
)

// packedDiskName names a disk of an image, packed.
func packedDiskName(n int) string { return diskName(n) + ".packed" }

const (
	recipeVersion = 1
	maxRecipe     = 1 << 20
)

// imageRecipe says what an image needs to be restored.
type imageRecipe struct {
	Version  int             `json:"version"`
	Contents engine.Contents `json:"contents"`
	Spec     engine.Spec     `json:"spec"` // of the source, complete
	// Monitor is what the monitor called itself, Kernel the release, and Machine what it
	// ran: what was in memory goes on only with the same.
	Monitor string  `json:"monitor"`
	Kernel  string  `json:"kernel"`
	Machine machine `json:"machine"`
	Agent   string  `json:"agent"` // its sha256
	Disks   []int64 `json:"disks"`
	Images  []int   `json:"images,omitempty"` // of folders that were copied: their image's number
}

// recipe is that of an image of the instance.
func (i *Instance) recipe(ctx context.Context, contents engine.Contents) (imageRecipe, error) {
	r := imageRecipe{Version: recipeVersion, Contents: contents}
	b := i.engine.bundle(i.id)
	var p stagePlan
	if err := loadJSON(b.recipe(), &r.Spec); err != nil {
		return r, fault.Wrap(fault.ErrUnavailable, err, "sandbox %s can't be copied: what it was made of is not on record", i.id)
	}
	if err := loadJSON(b.planFile(), &p); err != nil {
		return r, err
	}
	h, err := i.engine.available(ctx)
	if err != nil {
		return r, err
	}
	if r.Agent, err = i.engine.agentDigest(); err != nil {
		return r, err
	}
	r.Monitor, r.Kernel, r.Machine, r.Disks = h.version, h.kernel.release, p.Machine, p.Disks
	for n := range p.Images {
		r.Images = append(r.Images, n)
	}
	r.Machine.Arriving = false
	return r, nil
}

// packedDisks are the names of the packed disks of an image with what is at those places in an
// instance's own folder.
func (r imageRecipe) packedDisks() map[string]string {
	found := map[string]string{packedDiskName(0): diskName(0)}
	if r.Contents == engine.ContentsFiles {
		return found
	}
	for n := range r.Disks {
		found[packedDiskName(n)] = diskName(n)
	}
	for _, n := range r.Images {
		found[copiedName(n)+".packed"] = copiedName(n)
	}
	return found
}

// readRecipe reads that of a verified image.
func readRecipe(dir string) (imageRecipe, error) {
	var r imageRecipe
	path := filepath.Join(dir, recipeName)
	if info, err := os.Lstat(path); err != nil || info.Size() > maxRecipe {
		return r, fault.New(fault.ErrConflict, "the image at %s is not one of this engine: it has no %s", dir, recipeName)
	}
	data, err := os.ReadFile(path)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		err = d.Decode(&r)
	}
	if err != nil {
		return r, fault.Wrap(fault.ErrConflict, err, "the image at %s can't be read", dir)
	}
	if r.Version != recipeVersion || len(r.Disks) == 0 {
		return r, fault.New(fault.ErrConflict, "the image at %s is of version %d; this is for version %d", dir, r.Version, recipeVersion)
	}
	return r, nil
}

// checkSpec tells whether an instance of spec can be started from the image. The state in memory
// can't be changed from outside. Files alone need the same root under them.
func (r imageRecipe) checkSpec(spec engine.Spec, h *host, agent string) error {
	old := r.Spec
	no := func(format string, args ...any) error {
		return fault.New(fault.ErrConflict, "the snapshot of sandbox %s does not fit sandbox %s: %s", old.ID, spec.ID, fmt.Sprintf(format, args...))
	}
	switch {
	case old.Root != spec.Root:
		return no("it is on the root %s, not on %s", old.Root.Path, spec.Root.Path)
	case spec.Limits.DiskBytes < old.Limits.DiskBytes:
		return no("its disk has %d bytes and can't be made smaller than that, to %d", old.Limits.DiskBytes, spec.Limits.DiskBytes)
	case r.Contents == engine.ContentsFiles:
		return nil
	case !slices.Equal(old.Init, spec.Init):
		return no("its PID 1 is %q, not %q", old.Init, spec.Init)
	case old.Owner != spec.Owner:
		return no("it is owned by %+v, not by %+v", old.Owner, spec.Owner)
	case !slices.EqualFunc(old.Mounts, spec.Mounts, sameMount):
		return no("it has other mounts")
	case r.Machine.Hardware != h.hardware():
		return no("it was written by a machine that was %s, and machines are %s here; restore its files only", manner(r.Machine.Hardware), manner(h.hardware()))
	case r.Agent != agent:
		return no("the agent in it is of another version; restore its files only")
	case r.Monitor != h.version || r.Kernel != h.kernel.release:
		return no("it was written by %s with the kernel %s, and this host has %s with %s; restore its files only", r.Monitor, r.Kernel, h.version, h.kernel.release)
	}
	return nil
}

// manner is how a machine is made.
func manner(hardware bool) string {
	if hardware {
		return "the processor's"
	}
	return "emulated"
}

// agentDigest is the sha256 of the agent of this version.
func (e *Engine) agentDigest() (string, error) {
	data, err := e.cfg.Agent()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// sameMount ignores where a mount comes from, and how large one in memory is: that stays what
// it was.
func sameMount(a, b engine.Mount) bool {
	return a.Destination == b.Destination && a.ReadOnly == b.ReadOnly && a.Mode == b.Mode && (a.Source == "") == (b.Source == "")
}
