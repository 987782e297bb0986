package sandbox

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// Mount is a host path that somebody asked to see inside.
type Mount struct {
	Source      string
	Destination string
	ReadWrite   bool
}

// mountRules knows which host paths may never be shown.
type mountRules struct {
	own []string // the installation's directories, absolute
}

// systemTrees are kernel interfaces; showing them or the whole root would hand
// the host over.
func systemTrees() []string { return []string{"/proc", "/sys", "/dev"} }

// reservedInside are the places that the sandbox itself needs.
func reservedInside() []string {
	return []string{"/proc", "/sys", "/dev", "/.cofferdam", "/run/cofferdam", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"}
}

// check returns the mount with its source resolved, or fault.ErrInvalid.
func (r mountRules) check(m Mount) (Mount, error) {
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

func (r mountRules) checkSource(resolved string) error {
	if resolved == "/" {
		return fault.Invalid("the whole host can't be mounted; name the directory that the command needs")
	}
	for _, tree := range systemTrees() {
		if within(resolved, tree) {
			return fault.Invalid("%s can't be mounted: %s belongs to the host's kernel", resolved, tree)
		}
	}
	for _, own := range r.own {
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
