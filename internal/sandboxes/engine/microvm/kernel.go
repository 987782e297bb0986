package microvm

import (
	"bytes"
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// kernel is what a machine boots.
type kernel struct {
	image   string // the file that is booted
	release string
	modules string // the directory of its modules
}

// needed are the modules that every machine needs, unless they are part of the kernel; a
// monitor's machines need some more.
func needed() []string {
	return []string{"virtio_mmio", "virtio_blk", "erofs", "overlay"}
}

const imagePrefix = "vmlinuz-"

// findKernel looks below a directory for boot/vmlinuz-RELEASE and lib/modules/RELEASE, where a
// distribution's package puts them; "" is the host's own. Kernels made for clouds come first,
// then the newest.
func findKernel(dir string) (kernel, error) {
	if dir == "" {
		dir = "/"
	}
	images, err := filepath.Glob(filepath.Join(dir, "boot", imagePrefix+"*"))
	if err != nil {
		return kernel{}, err
	}
	var found []kernel
	for _, image := range images {
		k := kernel{image: image, release: strings.TrimPrefix(filepath.Base(image), imagePrefix)}
		for _, modules := range []string{"lib/modules", "usr/lib/modules"} {
			k.modules = filepath.Join(dir, modules, k.release)
			if info, err := os.Stat(k.modules); err == nil && info.IsDir() {
				found = append(found, k)
				break
			}
		}
	}
	if len(found) == 0 {
		return kernel{}, fault.New(fault.ErrUnavailable, "there is no kernel for machines: %s has no boot/%sRELEASE with lib/modules/RELEASE; unpack the package linux-image-cloud-amd64 (`apt-get download`, `dpkg -x`) and name the directory by guest_kernel in the configuration", dir, imagePrefix)
	}
	slices.SortFunc(found, func(a, b kernel) int {
		if x, y := strings.Contains(a.release, "cloud"), strings.Contains(b.release, "cloud"); x != y {
			if x {
				return -1
			}
			return 1
		}
		return -compareReleases(a.release, b.release)
	})
	return found[0], nil
}

// compareReleases compares numbers as numbers.
func compareReleases(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingChunk(a), leadingChunk(b)
		a, b = a[len(x):], b[len(y):]
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return len(a) - len(b)
}

// leadingChunk is the longest begin that is a number, or is none.
func leadingChunk(s string) string {
	digit := isDigit(s[0])
	if end := strings.IndexFunc(s, func(r rune) bool { return (r >= '0' && r <= '9') != digit }); end > 0 {
		return s[:end]
	}
	return s
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// module is one of a kernel.
type module struct {
	name string
	data []byte
}

// loadModules reads the modules that a machine needs, with those of its monitor, each after those
// that it depends on.
func (k kernel) loadModules(more []string) ([]module, error) {
	files, err := k.moduleFiles()
	if err != nil {
		return nil, err
	}
	builtin, err := os.ReadFile(filepath.Join(k.modules, "modules.builtin"))
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "what is part of the kernel %s is not known", k.release)
	}
	inside := map[string]bool{}
	for line := range strings.Lines(string(builtin)) {
		inside[moduleName(strings.TrimSpace(line))] = true
	}
	return inOrder(slices.Concat(needed(), more), func(name string) (*module, []string, error) {
		if inside[name] {
			return nil, nil, nil
		}
		path, ok := files[name]
		if !ok {
			return nil, nil, fault.New(fault.ErrUnavailable, "the kernel %s has no module %s in %s, which a machine needs", k.release, name, k.modules)
		}
		if !strings.HasSuffix(path, ".ko") {
			return nil, nil, fault.New(fault.ErrUnavailable, "the module %s is compressed: unpack it, or name another kernel by guest_kernel in the configuration", path)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		depends, err := dependencies(data)
		if err != nil {
			return nil, nil, fault.Wrap(fault.ErrUnavailable, err, "the module %s can't be read", path)
		}
		return &module{name: name, data: data}, depends, nil
	})
}

// moduleFiles are the paths of all modules, by name.
func (k kernel) moduleFiles() (map[string]string, error) {
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(k.modules, "kernel"), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.Contains(entry.Name(), ".ko") {
			found[moduleName(path)] = path
		}
		return nil
	})
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the modules of the kernel %s can't be listed", k.release)
	}
	return found, nil
}

// moduleName is a module's name by its file's: the kernel has no dashes in them.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// inOrder loads modules, each after what it depends on. load returns nil for what is part of
// the kernel.
func inOrder(names []string, load func(name string) (*module, []string, error)) ([]module, error) {
	var all []module
	seen := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		m, depends, err := load(name)
		if err != nil {
			return err
		}
		for _, d := range depends {
			if err := visit(d); err != nil {
				return err
			}
		}
		if m != nil {
			all = append(all, *m)
		}
		return nil
	}
	for _, name := range names {
		if err := visit(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// dependencies reads in a module's file what it depends on.
func dependencies(data []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	section := f.Section(".modinfo")
	if section == nil {
		return nil, errors.New("it says nothing of itself")
	}
	info, err := section.Data()
	if err != nil {
		return nil, err
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(line, "depends="); ok && list != "" {
			return strings.Split(strings.ReplaceAll(list, "-", "_"), ","), nil
		}
	}
	return nil, nil
}
