package mountpolicy

import (
	"errors"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

// systemTrees are kernel interfaces; showing them or the whole root would hand
// the host over.
func systemTrees() []string { return []string{"/proc", "/sys", "/dev"} }

// CheckCopied refuses a directory of which a copy would have what belongs to the host's kernel, as a mount would show it.
func CheckCopied(dir string) error {
	path, err := hostpath.Resolve(dir, nil)
	if link, is := errors.AsType[*hostpath.LinkError](err); is {
		return fault.Invalid("%s can't be copied: it leads through %s; go to the directory that it leads to by that one's own name", dir, link.Reason())
	}
	if err != nil {
		return err
	}
	defer path.Close()
	table, err := hostpath.ReadTable()
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s can't be copied: the host's table of mounts can't be read", dir)
	}
	return checkKernel(table, path.Name, "copied")
}

// checkKernel refuses a source, by its resolved path, that shows a part of what belongs to the host's kernel: by its own
// name, or where that is mounted a second time, at the source or below it, as in each root that somebody builds in a project.
// done is what can't be done with it: "mounted".
func checkKernel(table hostpath.Table, resolved, done string) error {
	for _, tree := range systemTrees() {
		if isWithin(resolved, tree) {
			return fault.Invalid("%s can't be %s: %s belongs to the host's kernel", resolved, done, tree)
		}
	}
	trees := systemTrees()
	for _, m := range table { // whole file systems in them, such as a /dev/shm
		if m.Shows.Path == "/" && slices.ContainsFunc(systemTrees(), func(tree string) bool { return m.At != tree && isWithin(m.At, tree) }) {
			trees = append(trees, m.At)
		}
	}
	const unmount = "unmount it there, or name a directory without it"
	for _, m := range table.Shown(resolved) {
		if m.IsKernels() {
			return fault.Invalid("%s can't be %s: at %s there is a file system of the host's kernel (%s); %s", resolved, done, m.At, m.Type, unmount)
		}
	}
	if tree, at := findShownOwn(table, trees, resolved); tree != "" {
		return fault.Invalid("%s can't be %s: at %s there is another name of a place in or above %s, which belongs to the host's kernel; %s", resolved, done, at, tree, unmount)
	}
	return nil
}
