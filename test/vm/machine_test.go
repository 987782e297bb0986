package vm

import (
	"os"
	"path/filepath"
	"strings"
)

// packages are what the guest has beside Debian's minimum: systemd, what the product wants of
// a host, what the suites' scripts call, and what delegates control groups to a user.
var packages = []string{
	"systemd-sysv", "udev", "dbus", "dbus-user-session", "libpam-systemd", "kmod", "procps", "iproute2", "util-linux", "mount", "passwd",
	"ca-certificates", "python3", "runc", "e2fsprogs", "erofs-utils", "uidmap",
}

// first are the modules by which the kernel finds its disks, in the order in which each
// finds what it needs. The rest is loaded by the system.
var first = []string{"virtio_ring", "virtio", "virtio_mmio", "virtio_blk"}

// kernelOf is the distribution's name for its newest kernel for machines in clouds.
const kernelOf = "linux-image-cloud-amd64"

// machine is what a boot takes.
type machine struct {
	kernel, initrd          string
	root, payload, template string
}

func (w workshop) machine() machine {
	w.t.Helper()
	w.room()
	w.run(w.repo, "qemu-system-x86_64", "--version") // before minutes of work: `sh scripts/deps long` installs it
	unpacked := w.kernel()
	vmlinuz, err := filepath.Glob(filepath.Join(unpacked, "boot", "vmlinuz-*"))
	if err != nil || len(vmlinuz) != 1 {
		w.t.Fatalf("the package of the kernel has the kernels %v (%v)", vmlinuz, err)
	}
	return machine{kernel: vmlinuz[0], initrd: w.initrd(unpacked), root: w.root(unpacked), payload: w.payload(), template: w.template()}
}

// kernel is the unpacked package of the distribution's kernel; it is not installed.
func (w workshop) kernel() string {
	w.t.Helper()
	var name string
	for line := range strings.Lines(w.run(w.dir, "apt-cache", "depends", kernelOf)) {
		if found, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: "); ok && strings.HasPrefix(found, "linux-image-") {
			name = found
		}
	}
	if name == "" {
		w.t.Fatalf("apt knows of no package %s: `apt-get update`, or there is none for this distribution", kernelOf)
	}
	policy := w.run(w.dir, "apt-cache", "show", "--no-all-versions", name)
	return w.keep("kernel", []string{policy}, func(path string) {
		dir := w.scratch()
		w.run(dir, "apt-get", "download", "-qq", name)
		debs, err := filepath.Glob(filepath.Join(dir, "*.deb"))
		if err != nil || len(debs) != 1 {
			w.t.Fatalf("apt-get brought %v (%v)", debs, err)
		}
		w.run(dir, "dpkg", "-x", debs[0], path)
	})
}

// initrd is the first file system: the program of test/vm/init and the first modules.
func (w workshop) initrd(kernel string) string {
	w.t.Helper()
	program := filepath.Join(w.scratch(), "init")
	w.run(w.repo, "go", "build", "-trimpath", "-ldflags=-s", "-o", program, "./test/vm/init")
	data, err := os.ReadFile(program)
	if err != nil {
		w.t.Fatal(err)
	}
	var c cpio
	c.dir("dev")
	c.device("dev/console", 5, 1)
	c.dir("modules")
	c.file("init", 0o755, data)
	for i, name := range first {
		c.file("modules/"+string(rune('0'+i))+"-"+name+".ko", 0o644, w.module(kernel, name))
	}
	path := filepath.Join(w.dir, "initrd")
	w.put(path, c.end(), 0o600)
	return path
}

func (w workshop) module(kernel, name string) []byte {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(kernel, "lib/modules/*/kernel/drivers/*", name+".ko"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("the module %s of the kernel is %v (%v)", name, found, err)
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		w.t.Fatal(err)
	}
	return data
}

// root is the guest's system, of the distribution's packages from the mirrors that this host's
// apt uses.
func (w workshop) root(kernel string) string {
	w.t.Helper()
	mirrors := w.mirrors()
	key := append([]string{filepath.Base(kernel), w.digest("testdata")}, append(packages, mirrors...)...)
	trusted, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt")
	if err != nil {
		w.t.Fatal(err)
	}
	return w.keep("root", append(key, string(trusted)), func(path string) {
		dir := filepath.Join(w.scratch(), "root")
		argv := []string{"mmdebstrap", "--quiet", "--variant=minbase", "--include=" + strings.Join(packages, ","), "", dir}
		w.run(w.dir, append(argv, mirrors...)...)
		here, err := os.Getwd()
		if err != nil {
			w.t.Fatal(err)
		}
		w.run(here, "sh", "testdata/setup.sh", dir, kernel)
		w.disk("guest", dir, path, 3000)
	})
}

// mirrors are the lines of apt's sources for the distribution's main repositories.
func (w workshop) mirrors() (lines []string) {
	w.t.Helper()
	const format = "$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)"
	for line := range strings.Lines(w.run(w.dir, "apt-get", "indextargets", "--format", format, "Created-By: Packages")) {
		f := strings.Fields(line)
		if len(f) == 4 && f[2] == "main" && f[3] == "Debian" {
			lines = append(lines, "deb "+f[0]+" "+f[1]+" main")
		}
	}
	if len(lines) == 0 {
		w.t.Fatal("this host's apt has no main repository of Debian: the guest is made of one")
	}
	return lines
}

// template is the disk with the template that `make template` has built here.
func (w workshop) template() string {
	w.t.Helper()
	built := filepath.Join(w.repo, ".cofferdam/templates/debian")
	generation, err := os.Readlink(filepath.Join(built, "current"))
	if err != nil {
		w.t.Fatalf("%v: `make template` builds it", err)
	}
	return w.keep("template", []string{generation}, func(path string) {
		dir := filepath.Join(w.scratch(), "templates")
		if err := os.Mkdir(dir, 0o755); err != nil {
			w.t.Fatal(err)
		}
		w.run(w.dir, "cp", "-a", built, dir)
		w.disk("template", dir, path, 1800)
	})
}

// payload is the disk with what is tried: the programs of `make build`, the unit, the demo,
// and the suites as programs, each where its package lies in the repository.
func (w workshop) payload() string {
	w.t.Helper()
	dir := filepath.Join(w.scratch(), "payload")
	for _, program := range []string{"bin/cofferdam", "bin/runsc"} {
		w.copied(filepath.Join(w.repo, program), filepath.Join(dir, program), 0o755)
	}
	w.copied(filepath.Join(w.repo, "internal/sandboxes/guest/embedded/bin/cofferdam-guest"), filepath.Join(dir, "bin/cofferdam-guest"), 0o755)
	w.copied(filepath.Join(w.repo, "packaging/systemd/cofferdam.service"), filepath.Join(dir, "cofferdam.service"), 0o644)
	for _, name := range []string{"agent.py", "policy.yaml"} {
		w.copied(filepath.Join(w.repo, "examples/demo", name), filepath.Join(dir, "examples/demo", name), 0o644)
	}
	w.put(filepath.Join(dir, "environment"), []byte("CHECKS=\""+os.Getenv("COFFERDAM_VM_CHECKS")+"\"\n"), 0o644)
	w.run(w.repo, "go", "build", "-trimpath", "-ldflags=-s", "-o", filepath.Join(dir, "bin/prove"), "./test/vm/prove")
	for _, suite := range []string{"internal/sandboxes/cgroup", "internal/sandboxes/engine/gvisor", "internal/sandboxes/engine/runc"} {
		w.run(w.repo, "go", "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s", "-o", filepath.Join(dir, suite, "suite.test"), "./"+suite)
	}
	return w.keep("payload", []string{w.digest(dir)}, func(path string) { w.disk("payload", dir, path, 600) })
}
