package cgroup

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// stageSuffix tells the group of a sandbox's stages from the sandbox's own: no id has a dot.
const stageSuffix = ".stage"

// ParentOf is the parent of an installation's groups, by its state directory: no two
// installations on a host have the same.
func ParentOf(state string) string {
	sum := sha256.Sum256([]byte(state))
	return "cofferdam-" + hex.EncodeToString(sum[:4])
}

// Ensure makes a group below the parent where it is not there yet, and sets its limits. It is
// for a process that outlives who made its group; Create is for what must be new. A limit for
// a controller that is missing is an error.
func (h *Hierarchy) Ensure(name string, limits Limits) (*Group, error) {
	return h.ensure("", name, limits)
}

// EnsureStage does so for the programs that work on a sandbox's files. Their group is beside
// the sandbox's own and not below it: version 2 has no processes in a group that has children,
// and what freezes a sandbox's group would freeze those below it.
func (h *Hierarchy) EnsureStage(id string, limits Limits) (*Group, error) {
	share := ""
	switch own, err := h.Open(id); {
	case err == nil:
		share = own.share
	case !errors.Is(err, fault.ErrNotFound):
		return nil, err
	}
	return h.ensure(share, id+stageSuffix, limits)
}

// OpenStage finds the group that EnsureStage made; fault.ErrNotFound if it is not there.
func (h *Hierarchy) OpenStage(id string) (*Group, error) { return h.Open(id + stageSuffix) }

func (h *Hierarchy) ensure(share, name string, limits Limits) (*Group, error) {
	g, err := h.groupOf(share, name)
	if err != nil {
		return nil, err
	}
	for range 10 { // another's Remove may take the parents away meanwhile
		if err = g.makeMissing(); err == nil {
			err = g.offered()
		}
		if !takenAway(err) {
			break
		}
		prepareParents(h.cfg)
	}
	if err == nil {
		err = g.reclaim(limits.MemoryBytes)
	}
	if err != nil {
		return nil, err
	}
	return g, g.setLimits(h, limits)
}

// reclaim has the kernel take back what a group that is in use has above a memory limit, and
// fails if that is not enough. Version 2 ends the processes of a group whose limit is set below
// what it uses; version 1 refuses such a limit by itself.
func (g *Group) reclaim(limit int64) error {
	p, ok := g.places[Memory]
	if !ok || p.version == 1 || limit <= 0 {
		return nil
	}
	current, high := filepath.Join(p.parent, "memory.current"), filepath.Join(p.parent, "memory.high")
	switch used, err := readNumber(current); {
	case errors.Is(err, os.ErrNotExist):
		return nil // what stands in for the kernel's files has no such one
	case err != nil:
		return err
	case used <= limit:
		return nil
	}
	// It takes back now what can be, and ends nobody.
	if err := writeControl(high, strconv.FormatInt(limit, 10)); err != nil {
		return err
	}
	used, err := readNumber(current)
	if err = errors.Join(err, writeControl(high, "max")); err != nil { // else it is slowed for ever
		return err
	}
	if used > limit {
		return fault.New(fault.ErrConflict, "the control group %s has %d bytes in use, more than its limit would allow (%d)", p.parent, used, limit)
	}
	return nil
}

// makeMissing makes those of the group's directories that are not there. The share is its
// sandbox's, which has made it.
func (g *Group) makeMissing() error {
	for _, dir := range g.listDirs() {
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) { //nolint:gosec // Limits are no secret, and other tools read them.
			return err
		}
	}
	return nil
}

// Adopt moves a process with all its threads into the group; what it starts later is there
// too. Its present memory stays counted where it was.
func (g *Group) Adopt(pid int) error {
	for _, dir := range g.listDirs() {
		path := filepath.Join(dir, "cgroup.procs")
		if slices.Contains(fields(path), strconv.Itoa(pid)) {
			continue
		}
		if err := writeControl(path, strconv.Itoa(pid)); err != nil {
			return fmt.Errorf("move process %d into the control group %s: %w", pid, dir, err)
		}
	}
	return nil
}

// Leave removes the group if nothing is in it, and says nothing if something is: the last of
// its processes takes it away.
func (g *Group) Leave() {
	for _, dir := range g.listDirs() {
		_ = unix.Rmdir(dir)
	}
	g.hierarchy.removeParents(g.share)
}

// Met is how often a group's limits were met.
type Met struct {
	OOMKills    int64
	PidsRefused int64
}

// Counters reads how often the group's limits were met; one that can't be read is zero.
func (g *Group) Counters() Met {
	kills, _ := g.OOMKills()
	refused, _ := g.PidsRefused()
	return Met{OOMKills: kills, PidsRefused: refused}
}
