// Package mounts is what of the host a sandbox may see: which paths may be shown, what
// is hidden in them, and what in them an agent must not rewrite.
//
// Vocabulary: a *mount* is a path of the host that somebody asked to see inside; a
// *guard* is a read-only mount over a file that decides what a later run may do; an
// ignore file *hides* paths of its mount.
package mounts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// Mount is a host path that somebody asked to see inside.
type Mount struct {
	Source      string
	Destination string
	ReadWrite   bool
}

// OfPolicy are the mounts that a policy itself asks for.
func OfPolicy(p *policy.Policy) []Mount {
	var all []Mount
	for _, m := range p.Mounts() {
		all = append(all, Mount{Source: m.Source, Destination: m.Destination, ReadWrite: m.ReadWrite})
	}
	return all
}

// Rules know which paths of the host may never be shown.
type Rules struct {
	Own []string // the installation's directories, absolute
	// EmptyFile lies over hidden files.
	EmptyFile string
}

// AgentPlace is where the guest agent's files are shown.
const AgentPlace = "/.cofferdam/bin"

// systemTrees are kernel interfaces; showing them or the whole root would hand
// the host over.
func systemTrees() []string { return []string{"/proc", "/sys", "/dev"} }

// reservedInside are the places that the sandbox itself needs.
func reservedInside() []string {
	return []string{"/proc", "/sys", "/dev", "/.cofferdam", "/run/cofferdam", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"}
}

// Destinations are where mounts lie in the sandbox, sorted.
func Destinations(all []engine.Mount) (writable, readOnly []string) {
	for _, mount := range all {
		if mount.ReadOnly {
			readOnly = append(readOnly, mount.Destination)
		} else {
			writable = append(writable, mount.Destination)
		}
	}
	slices.Sort(writable)
	slices.Sort(readOnly)
	return writable, readOnly
}

// Check returns the mount with its source resolved, or fault.ErrInvalid.
func (r Rules) Check(m Mount) (Mount, error) {
	if !filepath.IsAbs(m.Source) {
		return m, fault.Invalid("the mount source %q must be an absolute path", m.Source)
	}
	resolved, err := filepath.EvalSymlinks(m.Source)
	if err != nil {
		return m, fault.Invalid("the mount source %s does not exist or can't be read; name an existing file or directory", m.Source)
	}
	if err := r.checkSource(resolved); err != nil {
		return m, err
	}
	dst := filepath.Clean(m.Destination)
	if !filepath.IsAbs(m.Destination) || dst == "/" || strings.ContainsAny(dst, "\x00\n") {
		return m, fault.Invalid("the mount destination %q must be an absolute path other than /", m.Destination)
	}
	for _, tree := range reservedInside() {
		if within(dst, tree) {
			return m, fault.Invalid("the mount destination %s lies in %s, which the sandbox itself needs; use for example /workspace", dst, tree)
		}
	}
	return Mount{Source: resolved, Destination: dst, ReadWrite: m.ReadWrite}, nil
}

func (r Rules) checkSource(resolved string) error {
	if resolved == "/" {
		return fault.Invalid("the whole host can't be mounted; name the directory that the command needs")
	}
	for _, tree := range systemTrees() {
		if within(resolved, tree) {
			return fault.Invalid("%s can't be mounted: %s belongs to the host's kernel", resolved, tree)
		}
	}
	for _, own := range r.Own {
		if within(resolved, own) || within(own, resolved) {
			return fault.Invalid("%s can't be mounted: Cofferdam keeps its own state in %s", resolved, own)
		}
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return fault.Invalid("the mount source %s can't be read", resolved)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fault.Invalid("%s can't be mounted: it is neither a file nor a directory (a socket would be a way out)", resolved)
	}
	return nil
}

// within reports whether path is root or below it. Both are clean.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}
