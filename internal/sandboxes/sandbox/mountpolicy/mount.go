// Package mountpolicy is what of the host a sandbox may see: which paths may be shown, what
// is hidden in them, and what in them an agent must not rewrite.
//
// An ignore file hides paths of its mount. Over each file that decides what a later run may do lies
// a read-only mount, its guard.
package mountpolicy

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
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
	// Writable are what sandboxes may write of the host, or could while they lived; nil: they
	// may write nothing.
	Writable func() []hostpath.Tree
	// Hidden keeps what ignore files have hidden; nil: it is not kept.
	Hidden *Hidden
	// Projects are the directories of the projects that were allowed, whose ignore files hold wherever they are shown; nil:
	// there are none.
	Projects func() ([]string, error)
	// Copies is where the copies of runs are, without links. Ignore files above a copy are of no account: it was made without
	// what those hide that are above its original. "": there are none.
	Copies string
	// Seen is asked about an ignore file that says something else than what has hidden files before: an error if an agent
	// could have written it and no person has seen it as it is. nil: nobody is asked.
	Seen func(what, path string, text []byte) error
	// Programs are the files of the host that decide what programs of the configuration do; nil:
	// there are none.
	Programs func() []string
	// ToolHomes are those of Programs in which people keep everything, a project too: a mount in one of them is
	// no part of what the host runs. nil: / alone.
	ToolHomes func() []string
	// OwnPrograms are Cofferdam's own: its program, the engine's beside it, and the virtual environment in
	// which both lie. A mount that has one below it shows what has it, directly in the mount, read-only.
	OwnPrograms []string
}

// AgentPlace is where the guest agent's files are shown.
const AgentPlace = "/.cofferdam/bin"

// systemPrograms are the directories from which the host itself runs: its programs, their libraries and
// settings, and its kernels. The daemon runs some of them, and so does everybody else.
func systemPrograms() []string {
	return []string{
		"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/boot",
		"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/share",
		"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/libexec", "/usr/local/share", "/usr/local/go", "/usr/local/etc",
	}
}

// reservedInside are the places that the sandbox itself needs.
func reservedInside() []string {
	return []string{"/proc", "/sys", "/dev", "/.cofferdam", "/run/cofferdam", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64"}
}

// IsReserved tells of a place, absolute and clean, that the sandbox itself needs, so that nothing can be mounted there.
func IsReserved(destination string) bool {
	return slices.ContainsFunc(reservedInside(), func(tree string) bool { return isWithin(destination, tree) })
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

// WithHidden are read-only destinations, sorted, with those of what ignore files hide among mounts.
func WithHidden(readOnly []string, all []engine.Mount) []string {
	var hidden []string
	for _, mount := range all {
		if !mount.Around.IsZero() && !slices.Contains(readOnly, mount.Destination) {
			hidden = append(hidden, mount.Destination)
		}
	}
	return slices.Sorted(slices.Values(slices.Concat(readOnly, hidden)))
}

// Checked is a mount whose source is open. Close it.
type Checked struct {
	Mount // its source is without links

	path *hostpath.Path
}

// Origin is what its source is.
func (c Checked) Origin() hostpath.Identity { return c.path.ID }

// Close gives the source back.
func (c Checked) Close() { c.path.Close() }

// mountShown is the mount as an engine mounts it.
func (c Checked) mountShown() engine.Mount {
	return engine.Mount{Source: c.Source, Destination: c.Destination, ReadOnly: !c.ReadWrite, Origin: c.path.ID}
}

// Check opens a mount's source, once: what is mounted later is what was opened here, or
// nothing. It returns the mount with its source resolved, or fault.ErrInvalid. No link is
// followed that lies where a sandbox may write, or could while it lived.
func (r Rules) Check(m Mount) (Checked, error) { return r.checkMount(m, r.writableTrees()) }

func (r Rules) writableTrees() []hostpath.Tree {
	if r.Writable == nil {
		return nil
	}
	return r.Writable()
}

func (r Rules) checkMount(m Mount, trees []hostpath.Tree) (Checked, error) {
	if !filepath.IsAbs(m.Source) {
		return Checked{}, fault.Invalid("the mount source %q must be an absolute path", m.Source)
	}
	dst := filepath.Clean(m.Destination)
	if !filepath.IsAbs(m.Destination) || dst == "/" || strings.ContainsAny(dst, "\x00\n") {
		return Checked{}, fault.Invalid("the mount destination %q must be an absolute path other than /", m.Destination)
	}
	for _, tree := range reservedInside() {
		if isWithin(dst, tree) {
			return Checked{}, fault.Invalid("the mount destination %s lies in %s, which the sandbox itself needs; use for example /workspace", dst, tree)
		}
	}
	path, err := hostpath.Resolve(m.Source, trees)
	if err != nil {
		return Checked{}, r.unopened(m.Source, err)
	}
	err = r.checkPlace(path.Name)
	if err == nil && m.ReadWrite {
		err = r.checkPrograms(path.Name)
	}
	if err != nil {
		path.Close()
		return Checked{}, err
	}
	return Checked{Mount: Mount{Source: path.Name, Destination: dst, ReadWrite: m.ReadWrite}, path: path}, nil
}

// unopened says why a source can't be opened.
func (r Rules) unopened(source string, err error) error {
	var link *hostpath.LinkError
	var other *hostpath.TypeError
	switch {
	case errors.As(err, &link) && link.Tree == "/":
		return fault.Invalid("the mount source %s leads through the link %s, and what one of the sandboxes may write to is not known (the daemon's log names it), so that an agent could have put it there; name what it leads to, or destroy that sandbox", source, link.Link)
	case errors.As(err, &link):
		return fault.Invalid("the mount source %s leads through %s; name what it leads to", source, link.Reason())
	case errors.As(err, &other):
		if err := r.checkPlace(other.Path); err != nil {
			return err
		}
		return fault.Invalid("%s can't be mounted: it is neither a file nor a directory (a socket would be a way out)", other.Path)
	}
	return fault.Invalid("the mount source %s does not exist or can't be read; name an existing file or directory", source)
}

// checkPrograms refuses a source, by its resolved path, below which lies what the host runs or
// believes, or which is a part of it: whoever may write there would decide what that does. A file that is not
// there yet could be made.
func (r Rules) checkPrograms(source string) error {
	table, err := hostpath.ReadTable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "the host's table of mounts can't be read")
	}
	for _, tree := range systemPrograms() {
		_, below := table.NameUnder(tree, source)
		_, inside := table.NameUnder(source, tree)
		if below || inside {
			return fault.Invalid("%s can't be mounted read-write: the host's own programs and their settings are in %s, and an agent could replace them; mount it read-only, or name a directory elsewhere", source, tree)
		}
	}
	if r.Programs == nil {
		return nil
	}
	for _, file := range r.Programs() {
		names := []string{filepath.Clean(file)}
		resolved, links, err := hostpath.Links(file)
		if err == nil {
			names = append(names, resolved)
		}
		for _, name := range append(names, links...) {
			if _, below := table.NameUnder(name, source); below {
				return fault.Invalid("%s, which the configuration has the host run or believe, is reached under the read-write mount %s, where an agent could replace it; move it out, or mount that directory read-only", file, source)
			}
			if _, inside := table.NameUnder(source, name); inside && !slices.Contains(links, name) && !slices.Contains(r.toolHomes(), name) {
				return fault.Invalid("the read-write mount %s lies in %s, in which the configuration has the host look for what it runs or believes, and an agent could replace a part of it; mount it read-only, or name another directory in the configuration", source, file)
			}
		}
	}
	return nil
}

// checkPlace refuses what is never shown, by its resolved path.
func (r Rules) checkPlace(resolved string) error {
	if resolved == "/" {
		return fault.Invalid("the whole host can't be mounted; name the directory that the command needs")
	}
	table, err := hostpath.ReadTable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s can't be mounted: the host's table of mounts can't be read", resolved)
	}
	return r.checkPlaceIn(table, resolved)
}

// checkPlaceIn does what checkPlace does, by a table of mounts.
func (r Rules) checkPlaceIn(table hostpath.Table, resolved string) error {
	if err := checkKernel(table, resolved, "mounted"); err != nil {
		return err
	}
	for _, own := range r.Own {
		if isWithin(resolved, own) || isWithin(own, resolved) {
			return fault.Invalid("%s can't be mounted: Cofferdam keeps its own state in %s", resolved, own)
		}
	}
	return r.checkOtherNames(table, resolved)
}

// isWithin reports whether path is root or below it. Both are clean.
func isWithin(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// toolHomes are Rules.ToolHomes by every name, and the root.
func (r Rules) toolHomes() []string {
	all := []string{"/"}
	if r.ToolHomes == nil {
		return all
	}
	for _, home := range r.ToolHomes() {
		all = append(all, filepath.Clean(home))
		if resolved, _, err := hostpath.Links(home); err == nil {
			all = append(all, resolved)
		}
	}
	return all
}
