package gvisor

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
)

// rootHint is gVisor's prefix of annotations about the root file system.
const rootHint = "dev.gvisor.spec.rootfs."

// Sizes of the memory file systems that every sandbox has.
const (
	runBytes = 16 << 20
	devBytes = 1 << 20
)

// noFile is PID 1's limit of open files; each of its streams takes some.
const noFile = 65536

// logName is what runsc and the agent write to.
const logName = "runsc.log"

// bundle is the layout of an instance's files.
type bundle struct {
	dir string
}

func (b bundle) config() string   { return filepath.Join(b.dir, "config.json") }
func (b bundle) recipe() string   { return filepath.Join(b.dir, "spec.json") }
func (b bundle) rootDir() string  { return filepath.Join(b.dir, "root") }
func (b bundle) emptyDir() string { return filepath.Join(b.dir, "empty") }
func (b bundle) planFile() string { return filepath.Join(b.dir, "stage.json") }
func (b bundle) owners() string   { return filepath.Join(b.dir, "owners.json") }
func (b bundle) pinsDir() string  { return filepath.Join(b.dir, "pins") }
func (b bundle) pinPlace(n int) string {
	return filepath.Join(b.pinsDir(), strconv.Itoa(n))
}
func (b bundle) logFile() string { return filepath.Join(b.dir, logName) }
func (b bundle) bootID() string  { return filepath.Join(b.dir, "boot_id") }
func (b bundle) refill() string  { return filepath.Join(b.dir, "refilled") }
func (b bundle) storeDir(n int) string {
	return filepath.Join(b.dir, "tmpfs-"+strconv.Itoa(n))
}

// writeBundle makes the directories and config.json; the bundle's own directory
// exists already. upper is a tar for the root's writable layer, or "".
func (b bundle) writeBundle(spec engine.Spec, ids identity.Identity, upper string) error {
	if err := b.saveSpec(spec); err != nil {
		return err
	}
	for _, dir := range []string{b.rootDir(), b.emptyDir(), b.pinsDir()} {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // Read by the gofer, which is another user.
			return err
		}
	}
	if spec.Root.Kind == engine.RootDir {
		shown, err := copySkeleton(spec, ids, b.rootDir())
		if err != nil {
			return err
		}
		spec.Mounts = slices.Concat(shown, spec.Mounts)
	}
	if err := errors.Join(b.beBorn(), b.keepPlan(spec.Mounts), b.keepOwners(owners{spec.Owner, ids.UIDs, ids.GIDs})); err != nil {
		return err
	}
	config, err := b.ociSpec(spec, ids)
	if err != nil {
		return err
	}
	if upper != "" {
		config.Annotations[tarHint] = upper
	}
	return b.saveConfig(config)
}

func (b bundle) saveConfig(config *specs.Spec) error {
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(b.config(), data, 0o600)
}

// fillUpper has the next start fill the root's writable layer from a tar.
func (b bundle) fillUpper(upper string) error {
	// It is remembered as long as the bundle lives: what is frozen later names the tar.
	if err := os.WriteFile(b.refill(), nil, 0o600); err != nil {
		return err
	}
	return b.annotate(func(annotations map[string]string) { annotations[tarHint] = upper })
}

// refilled tells whether a start since the first filled the root's writable layer.
func (b bundle) refilled() bool {
	_, err := os.Lstat(b.refill())
	return err == nil
}

// emptied takes the tar out of config.json once the instance has started: it is
// no part of what a thaw starts, and may be gone by then.
func (b bundle) emptied(upper string) error {
	if upper == "" {
		return nil
	}
	return b.annotate(func(annotations map[string]string) { delete(annotations, tarHint) })
}

// annotate changes the annotations of config.json.
func (b bundle) annotate(change func(annotations map[string]string)) error {
	data, err := os.ReadFile(b.config())
	if err != nil {
		return err
	}
	var config specs.Spec
	if err := json.Unmarshal(data, &config); err != nil {
		return err
	}
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	change(config.Annotations)
	return b.saveConfig(&config)
}

// ociSpec translates into the OCI runtime specification.
func (b bundle) ociSpec(spec engine.Spec, ids identity.Identity) (*specs.Spec, error) {
	config := &specs.Spec{
		Version:     "1.1.0",
		Process:     firstProcess(spec, ids),
		Root:        &specs.Root{Path: b.rootDir()},
		Hostname:    spec.Hostname,
		Annotations: map[string]string{},
		Linux: &specs.Linux{
			UIDMappings: ids.UIDs, GIDMappings: ids.GIDs, Namespaces: namespaces(spec.Weak), Resources: toldLimits(spec.Limits),
			// No masked paths: runsc drops them, since /proc and /sys are the
			// sentry's own and show nothing of the host.
		},
	}
	if spec.Root.Kind == engine.RootImage {
		config.Annotations[rootHint+"source"] = spec.Root.Path
		config.Annotations[rootHint+"type"] = "erofs"
		config.Annotations[rootHint+"overlay"] = "dir=" + b.dir
		config.Annotations[rootHint+"options"] = "size=" + strconv.FormatInt(spec.Limits.DiskBytes, 10)
	}
	var err error
	config.Mounts, err = b.mounts(spec, config.Annotations)
	return config, err
}

// toldLimits are the limits that runsc tells the sandbox of: it keeps none of them, the control group does.
func toldLimits(l engine.Limits) *specs.LinuxResources {
	period, quota := uint64(cpuPeriod), int64(l.CPU*cpuPeriod)
	return &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &l.MemoryBytes}, CPU: &specs.LinuxCPU{Quota: &quota, Period: &period}}
}

// cpuPeriod is of what processor time is counted in, in microseconds.
const cpuPeriod = 100_000

// firstProcess is PID 1: root inside, with what the guest agent needs and no more.
func firstProcess(spec engine.Spec, ids identity.Identity) *specs.Process {
	caps := []string{
		"CAP_NET_BIND_SERVICE", "CAP_SETUID", "CAP_SETGID",
		"CAP_KILL", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER",
		"CAP_SYS_RESOURCE", // Its threads don't count against the limit of a user that is also a command's.
		"CAP_NET_ADMIN",    // A second address on lo, before anything else runs; then given up.
	}
	p := &specs.Process{
		Args: spec.Init, Env: spec.Env, Cwd: "/", NoNewPrivileges: true,
		// The bounding set is empty from the start, so that nothing needs CAP_SETPCAP to empty
		// it; on each of the agent's threads, for each of these, that took a third of its own
		// start. So it has them by inheritance, which it gives up before anything else runs.
		Capabilities: &specs.LinuxCapabilities{Effective: caps, Permitted: caps, Inheritable: caps},
		Rlimits: []specs.POSIXRlimit{
			{Type: "RLIMIT_NOFILE", Soft: noFile, Hard: noFile},
			{Type: "RLIMIT_NPROC", Soft: uint64(spec.Limits.Pids), Hard: uint64(spec.Limits.Pids)},
			{Type: "RLIMIT_CORE"},
		},
	}
	if ids.Single {
		p.User = specs.User{UID: uint32(spec.Owner.UID), GID: uint32(spec.Owner.GID)}
		p.Capabilities.Ambient = caps
	}
	return p
}

// namespaces are all of the sandbox's own. The weak sandbox of positive
// controls is in the host's network, and with the host's ids, because its
// agent could not listen on port 53 there without them.
func namespaces(weak bool) []specs.LinuxNamespace {
	kinds := []specs.LinuxNamespaceType{
		specs.PIDNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace,
	}
	if !weak {
		kinds = append(kinds, specs.NetworkNamespace, specs.UserNamespace)
	}
	all := make([]specs.LinuxNamespace, 0, len(kinds))
	for _, kind := range kinds {
		all = append(all, specs.LinuxNamespace{Type: kind})
	}
	return all
}

// mounts are the kernel's own file systems, those that every sandbox has, and
// what was asked for, which wins over ours at the same place.
func (b bundle) mounts(spec engine.Spec, annotations map[string]string) ([]specs.Mount, error) {
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		bindMount(engine.Mount{Source: b.bootID(), Destination: "/proc/sys/kernel/random/boot_id", ReadOnly: true}),
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{formatSize(devBytes), "mode=755", "nosuid"}},
		{Destination: "/sys", Type: "sysfs", Source: "sysfs", Options: []string{"ro", "nosuid", "nodev", "noexec"}},
	}
	asked := map[string]bool{}
	binds := 0
	for i, m := range spec.Mounts {
		asked[filepath.Clean(m.Destination)] = true
		if m.Source != "" {
			binds++
			if staged() {
				m.Source = b.pinPlace(i)
			}
			all = append(all, bindMount(m))
			continue
		}
		mount, err := b.fileBacked(i, m, annotations)
		if err != nil {
			return nil, err
		}
		all = append(all, mount)
	}
	own, err := b.ownMounts(spec, asked, annotations)
	if err != nil {
		return nil, err
	}
	all = append(all, own...)
	if binds == 0 {
		// runsc starts no gofer without a host mount, and can't put a file
		// behind the root's writable layer without a gofer.
		all = append(all, bindMount(engine.Mount{Source: b.emptyDir(), Destination: "/.cofferdam", ReadOnly: true}))
	}
	return all, nil
}

// ownMounts are those that every sandbox has, without what was asked for at their places.
func (b bundle) ownMounts(spec engine.Spec, asked map[string]bool, annotations map[string]string) (all []specs.Mount, err error) {
	for _, own := range []engine.Mount{
		{Destination: "/dev/shm", SizeBytes: spec.Limits.SharedMemory(), Mode: 0o1777},
		{Destination: "/run", SizeBytes: runBytes, Mode: 0o755},
		{Destination: "/tmp", SizeBytes: spec.Limits.DiskBytes, Mode: 0o1777},
	} {
		switch {
		case asked[own.Destination]:
		case own.Destination == "/tmp":
			mount, err := b.fileBacked(len(spec.Mounts), own, annotations)
			if err != nil {
				return nil, err
			}
			all = append(all, mount)
		default:
			all = append(all, specs.Mount{
				Destination: own.Destination, Type: "tmpfs", Source: "tmpfs",
				Options: []string{formatSize(own.SizeBytes), formatMode(own.Mode), "nosuid", "nodev"},
			})
		}
	}
	return all, nil
}

// beBorn gives the instance an id of its boot. The sentry's own is in its memory, and so
// the same in all copies; this one is a file of the instance, shown over it, and another
// one in each copy. A thaw keeps it, as the instance goes on.
func (b bundle) beBorn() error {
	id := make([]byte, 16)
	rand.Read(id) // never fails: it ends the process instead
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := fmt.Sprintf("%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	return os.WriteFile(b.bootID(), []byte(text), 0o444) //nolint:gosec // Read by the gofer, which is another user.
}

func bindMount(m engine.Mount) specs.Mount {
	access := "rw"
	if m.ReadOnly {
		access = "ro"
	}
	return specs.Mount{
		Destination: m.Destination, Source: m.Source, Type: "bind",
		Options: []string{"rbind", access, "nosuid", "nodev"},
	}
}

// fileBacked is a sized tmpfs whose bytes are in a file of the bundle, so that
// filling it costs disk and not the sandbox's memory, which would kill it.
func (b bundle) fileBacked(n int, m engine.Mount, annotations map[string]string) (specs.Mount, error) {
	store := b.storeDir(n)
	if err := os.Mkdir(store, 0o700); err != nil {
		return specs.Mount{}, err
	}
	hint := fmt.Sprintf("dev.gvisor.spec.mount.t%d.", n)
	annotations[hint+"source"] = store
	annotations[hint+"type"] = "tmpfs"
	annotations[hint+"share"] = "container"
	annotations[hint+"options"] = "rw,nosuid,nodev," + formatSize(m.SizeBytes) + "," + formatMode(m.Mode)
	return specs.Mount{
		// A bind mount of the directory, which the hint turns into a tmpfs.
		Destination: m.Destination, Type: "bind", Source: store,
		Options: []string{"rw", "nosuid", "nodev"},
	}, nil
}

func formatSize(n int64) string { return "size=" + strconv.FormatInt(n, 10) }

func formatMode(m uint32) string {
	if m == 0 {
		m = 0o755
	}
	return fmt.Sprintf("mode=%04o", m)
}
