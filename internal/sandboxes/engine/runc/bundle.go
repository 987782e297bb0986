package runc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/identity"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine/mounts"
)

// Sizes of the memory file systems that every sandbox has.
const (
	runBytes = 16 << 20
	devBytes = 1 << 20
)

// noFile is PID 1's limit of open files, where the host allows as many; each of its
// streams takes some.
const noFile = 65536

// openFileLimit is that limit here: a root without CAP_SYS_RESOURCE can't go beyond its own.
func openFileLimit() uint64 {
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		return noFile
	}
	return min(noFile, own.Max)
}

// logName is what the stage, runc and the agent write to.
const logName = "runc.log"

// bundle is the layout of an instance's files.
type bundle struct {
	dir string
}

func (b bundle) config() string   { return filepath.Join(b.dir, "config.json") }
func (b bundle) planFile() string { return filepath.Join(b.dir, "stage.json") }
func (b bundle) logFile() string  { return filepath.Join(b.dir, logName) }
func (b bundle) diskFile(n int) string {
	return filepath.Join(b.dir, "disk-"+strconv.Itoa(n))
}

// layout is where a stage mounts what a bundle names: below its place.
type layout struct {
	place string
}

func (l layout) lowerDir() string { return filepath.Join(l.place, "lower") }
func (l layout) rootDir() string  { return filepath.Join(l.place, "root") }
func (l layout) diskDir(n int) string {
	return filepath.Join(l.place, "disk-"+strconv.Itoa(n))
}

func (l layout) emptyDir() string       { return filepath.Join(l.place, "empty") }
func (l layout) bindPlace(n int) string { return filepath.Join(l.place, "bind-"+strconv.Itoa(n)) }

// filesDir is the directory of a disk that the sandbox sees: the disk's own top has what
// belongs to its file system.
func (l layout) filesDir(n int) string { return filepath.Join(l.diskDir(n), "files") }

// cappedDisk is a capped file system of the instance.
type cappedDisk struct {
	Bytes int64  `json:"bytes"`
	Mode  uint32 `json:"mode"`
}

// stagePlan is what a stage reads.
type stagePlan struct {
	Runc   string                 `json:"runc"`
	Root   string                 `json:"root"` // runc's states
	ID     string                 `json:"id"`
	Place  string                 `json:"place"`
	Blanks mounts.Blanks          `json:"blanks"`
	Lower  engine.Root            `json:"lower"`
	Disks  []cappedDisk           `json:"disks"`           // the first is the root's writable layer
	Upper  string                 `json:"upper,omitempty"` // a snapshot's file, of what is in that layer at the start
	UIDs   []specs.LinuxIDMapping `json:"uids"`
	GIDs   []specs.LinuxIDMapping `json:"gids"`
	// Mounts are the instance's. Paths of the host among them are shown with the owner of
	// BindUID and BindGID as the sandbox's, or for root the owner of what is shown, unless
	// their size is 0: as they are.
	Mounts  []engine.Mount       `json:"mounts,omitempty"`
	BindUID specs.LinuxIDMapping `json:"bind_uid"`
	BindGID specs.LinuxIDMapping `json:"bind_gid"`
}

// bindMount shows a path of the host, the n-th mount, by the place at which the stage lays it.
func bindMount(at layout, n int, m engine.Mount) specs.Mount {
	access := "rw"
	if m.ReadOnly {
		access = "ro"
	}
	return specs.Mount{
		Destination: m.Destination, Source: at.bindPlace(n), Type: "bind",
		Options: []string{"rbind", "rprivate", access, "nosuid", "nodev"},
	}
}

// writeBundle makes config.json and the stage's plan; the bundle's own directory exists already.
func (b bundle) writeBundle(spec engine.Spec, ids identity.Identity, p stagePlan, cgroup string) error {
	config, err := b.ociSpec(spec, ids, &p, cgroup)
	if err == nil {
		err = p.checkOwners(spec)
	}
	if err != nil {
		return err
	}
	for path, v := range map[string]any{b.config(): config, b.planFile(): p} {
		data, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// ociSpec translates into the OCI runtime specification, and adds the disks to the plan.
func (b bundle) ociSpec(spec engine.Spec, ids identity.Identity, p *stagePlan, cgroup string) (*specs.Spec, error) {
	at := layout{place: p.Place}
	p.Disks = []cappedDisk{{Bytes: spec.Limits.DiskBytes, Mode: 0o755}}
	if remapped(spec.Owner) && !spec.Weak {
		p.BindUID = mapOneID(spec.Owner.HostUID, identity.HostID(ids.UIDs, uint32(spec.Owner.UID)))
		p.BindGID = mapOneID(spec.Owner.HostGID, identity.HostID(ids.GIDs, uint32(spec.Owner.GID)))
	}
	config := &specs.Spec{
		Version:  "1.0.2",
		Process:  firstProcess(spec),
		Root:     &specs.Root{Path: at.rootDir()},
		Hostname: spec.Hostname,
		Mounts:   mountsOf(spec, at, p),
		Linux: &specs.Linux{
			UIDMappings: ids.UIDs, GIDMappings: ids.GIDs, Namespaces: namespaces(spec.Weak), CgroupsPath: cgroup,
			// Devices are bound from the host by runc, those of every container alone.
			Resources:     &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}},
			MaskedPaths:   masked(),
			ReadonlyPaths: []string{"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
	var err error
	config.Linux.Seccomp, err = seccomp.GetDefaultProfile(config)
	if err != nil {
		return nil, fmt.Errorf("the filter of system calls: %w", err)
	}
	return config, nil
}

// masked are what tells of the host.
func masked() []string {
	return []string{
		"/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/proc/sys/kernel/random/boot_id", "/proc/modules", "/proc/kallsyms",
		"/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/partitions", "/proc/diskstats", "/proc/swaps", "/proc/mdstat",
		"/proc/vmallocinfo", "/proc/slabinfo", "/proc/config.gz", "/proc/pressure", "/proc/dynamic_debug", "/proc/cmdline",
	}
}

// firstProcess is PID 1: root inside, with what the guest agent needs and no more. The
// host's kernel lets nobody inherit what is not in the bounding set, so that the agent
// empties that itself, before anything else runs.
func firstProcess(spec engine.Spec) *specs.Process {
	caps := []string{
		"CAP_NET_BIND_SERVICE", "CAP_SETUID", "CAP_SETGID",
		"CAP_KILL", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER",
		"CAP_NET_ADMIN", // of its own namespace
		"CAP_SETPCAP",   // to empty the bounding set
	}
	env, processes := spec.Env, uint64(spec.Limits.Pids)
	if !spec.Weak && noEach() == "" {
		// To lower the limits of commands, which are other users'. It raises no limit: that
		// takes the host's.
		caps = append(caps, "CAP_SYS_RESOURCE")
		// The starter of a command may have more processes than the command: of a user that has
		// used up what it may have, the next one starts all the same.
		env, processes = append(slices.Clone(env), channel.LimitEach+"=1"), 2*processes
	}
	return &specs.Process{
		Args: spec.Init, Env: env, Cwd: "/", NoNewPrivileges: true,
		Capabilities: &specs.LinuxCapabilities{Bounding: caps, Effective: caps, Permitted: caps, Inheritable: caps},
		Rlimits: []specs.POSIXRlimit{
			{Type: "RLIMIT_NOFILE", Soft: openFileLimit(), Hard: openFileLimit()},
			{Type: "RLIMIT_NPROC", Soft: processes, Hard: processes},
			{Type: "RLIMIT_CORE"},
		},
	}
}

// namespaces are all of the sandbox's own. The weak sandbox of positive controls is in the
// host's network, and with the host's ids.
func namespaces(weak bool) []specs.LinuxNamespace {
	kinds := []specs.LinuxNamespaceType{
		specs.PIDNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.MountNamespace, specs.CgroupNamespace,
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

// mountsOf are the kernel's own file systems, those that every sandbox has, and what was
// asked for, which wins over ours at the same place. /sys is empty: the host's shows its
// devices and modules.
func mountsOf(spec engine.Spec, at layout, p *stagePlan) []specs.Mount {
	all := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc", Options: []string{"nosuid", "nodev", "noexec"}},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{formatSize(devBytes), "mode=755", "nosuid", "strictatime"}},
		{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"newinstance", "ptmxmode=0666", "mode=0620", "nosuid", "noexec"}},
		{Destination: "/sys", Type: "tmpfs", Source: "tmpfs", Options: []string{"size=4096", "mode=555", "ro", "nosuid", "nodev", "noexec"}},
	}
	asked := map[string]bool{}
	for _, m := range spec.Mounts {
		asked[filepath.Clean(m.Destination)] = true
	}
	for _, own := range []engine.Mount{
		{Destination: "/run", SizeBytes: runBytes, Mode: 0o755},
		{Destination: "/dev/shm", SizeBytes: spec.Limits.SharedMemory(), Mode: 0o1777},
	} {
		if !asked[own.Destination] {
			all = append(all, specs.Mount{
				Destination: own.Destination, Type: "tmpfs", Source: "tmpfs",
				Options: []string{formatSize(own.SizeBytes), fmt.Sprintf("mode=%04o", own.Mode), "nosuid", "nodev"},
			})
		}
	}
	if !asked["/tmp"] {
		all = append(all, p.onDisk(at, engine.Mount{Destination: "/tmp", SizeBytes: spec.Limits.DiskBytes, Mode: 0o1777}))
	}
	p.Mounts = spec.Mounts
	for n, m := range spec.Mounts {
		if m.Source == "" {
			all = append(all, p.onDisk(at, m))
			continue
		}
		all = append(all, bindMount(at, n, m))
	}
	return all
}

// onDisk shows a disk of its own at a mount's place, so that filling it costs disk and not
// the sandbox's memory, which would kill it.
func (p *stagePlan) onDisk(at layout, m engine.Mount) specs.Mount {
	mode := m.Mode
	if mode == 0 {
		mode = 0o755
	}
	p.Disks = append(p.Disks, cappedDisk{Bytes: m.SizeBytes, Mode: mode})
	return specs.Mount{
		Destination: m.Destination, Type: "bind", Source: at.filesDir(len(p.Disks) - 1),
		Options: []string{"bind", "rprivate", "rw", "nosuid", "nodev"},
	}
}

func mapOneID(from, to int) specs.LinuxIDMapping {
	return specs.LinuxIDMapping{ContainerID: uint32(from), HostID: uint32(to), Size: 1}
}

func formatSize(n int64) string { return "size=" + strconv.FormatInt(n, 10) }
