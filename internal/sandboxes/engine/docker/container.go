package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	dockerimage "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

type imageSummary = dockerimage.Summary

// Sizes of the memory file systems that every sandbox has.
const (
	runBytes = 16 << 20
)

// noFile is PID 1's limit of open files, where the service may give as many; each of its
// streams takes some.
const noFile = 65536

// Tasks of the host that an instance has beside its guest's processes: the agent's threads,
// or those of a kernel of its own, which has some for each process.
const (
	ownTasks        = 128
	kernelTasks     = 512
	kernelTasksEach = 4
)

// conflicts tells whether the service can't do something now, because of what it does.
func conflicts(err error) bool { return errdefs.IsConflict(err) }

// container is the description of an instance's container. entries are what the root has in
// its top directory; files is PID 1's limit of open files.
func (e *Engine) container(spec engine.Spec, r runtimeOf, g ground, entries []rootEntry, image string, files int64) client.ContainerCreateOptions {
	none := false
	return client.ContainerCreateOptions{
		Name: e.containerName(spec.ID),
		Config: &container.Config{
			Image: image, Hostname: spec.Hostname, User: "0:0", WorkingDir: "/",
			Entrypoint: spec.Init, Cmd: []string{}, Env: append(r.guestEnvironment(), spec.Env...),
			AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
			Labels:      e.labels(spec.ID),
			Healthcheck: &container.HealthConfig{Test: []string{"NONE"}}, StopSignal: "SIGKILL",
		},
		HostConfig: &container.HostConfig{
			Runtime: r.name, NetworkMode: networkOf(spec), IpcMode: "private", CgroupnsMode: "private",
			ReadonlyRootfs: true, Init: &none,
			CapDrop: []string{"ALL"}, CapAdd: capabilities(), SecurityOpt: []string{"no-new-privileges"},
			// The channel is what PID 1 writes; nobody keeps a copy.
			LogConfig:     container.LogConfig{Type: "none"},
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			ShmSize:       spec.Limits.SharedMemory(),
			Tmpfs:         memoryMounts(spec),
			Mounts:        containerMounts(spec, g, entries),
			MaskedPaths:   masked(), ReadonlyPaths: readOnly(),
			Resources: resources(spec.Limits, r, files),
		},
	}
}

func (e *Engine) containerName(id string) string {
	return "cofferdam-" + e.installation[:8] + "-" + id
}

func (e *Engine) labels(id string) map[string]string {
	all := map[string]string{labelInstallation: e.installation, labelSandbox: id}
	if strings.HasPrefix(id, probePrefix) {
		all[labelProbe] = prober()
	}
	return all
}

// networkOf is none: the service makes a namespace with a loopback interface. The weak
// sandbox of positive controls is in the host's.
func networkOf(spec engine.Spec) container.NetworkMode {
	if spec.Weak {
		return "host"
	}
	return "none"
}

// capabilities are what the guest agent needs. It empties its bounding set and keeps fewer
// before anything else runs.
func capabilities() []string {
	return []string{
		"NET_BIND_SERVICE", "SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER",
		"NET_ADMIN", // of its own namespace
		"SETPCAP",   // to empty the bounding set
	}
}

func resources(l engine.Limits, r runtimeOf, files int64) container.Resources {
	pids := int64(ownTasks + 2*l.Pids)
	if r.ownKernel {
		pids = int64(kernelTasks + kernelTasksEach*l.Pids)
	}
	return container.Resources{
		Memory: l.MemoryBytes, MemorySwap: l.MemoryBytes, NanoCPUs: int64(l.CPU * 1e9), PidsLimit: &pids,
		Ulimits: []*container.Ulimit{
			{Name: "nofile", Soft: files, Hard: files}, {Name: "core"},
		},
	}
}

// masked are what tells of the host.
func masked() []string {
	return []string{
		"/sys", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/key-users", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/proc/sys/kernel/random/boot_id", "/proc/modules", "/proc/kallsyms",
		"/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/partitions", "/proc/diskstats", "/proc/swaps", "/proc/mdstat",
		"/proc/vmallocinfo", "/proc/slabinfo", "/proc/config.gz", "/proc/pressure", "/proc/dynamic_debug", "/proc/cmdline",
	}
}

func readOnly() []string {
	return []string{"/proc/asound", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

// memoryMounts are what is small and in memory: /run, unless something else is asked for
// there.
func memoryMounts(spec engine.Spec) map[string]string {
	if askedFor(spec, "/run") {
		return nil
	}
	return map[string]string{"/run": fmt.Sprintf("rw,nosuid,nodev,size=%d,mode=755", runBytes)}
}

// containerMounts are what of the ground lies where: the root's entries, the host's paths,
// and a disk for each file system in memory that is asked for, so that filling it costs
// disk and not the sandbox's memory.
func containerMounts(spec engine.Spec, g ground, entries []rootEntry) []mount.Mount {
	var all []mount.Mount
	add := func(source, target string, readOnly bool) {
		all = append(all, mount.Mount{
			Type: mount.TypeBind, Source: source, Target: target, ReadOnly: readOnly,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate},
		})
	}
	for _, en := range entries {
		at := "/" + en.name
		if en.link == "" && !kernels(en.name) && en.name != "run" && en.name != "tmp" && !askedFor(spec, at) {
			add(filepath.Join(g.rootDir(), en.name), at, false)
		}
	}
	if !askedFor(spec, "/etc") {
		for _, name := range networkFiles() {
			if !askedFor(spec, "/"+name) {
				add(filepath.Join(g.rootDir(), name), "/"+name, false)
			}
		}
	}
	disks, binds := 1, 0
	if !askedFor(spec, "/tmp") {
		add(g.filesDir(disks), "/tmp", false)
		disks++
	}
	for _, m := range spec.Mounts {
		if m.Source == "" {
			add(g.filesDir(disks), m.Destination, false)
			disks++
			continue
		}
		add(g.bindPlace(binds), m.Destination, m.ReadOnly)
		binds++
	}
	return all
}

// planOf says what a ground is laid of, in the order of containerMounts.
func planOf(spec engine.Spec, folder string) groundPlan {
	p := groundPlan{
		folder: folder, lower: spec.Root, owner: spec.Owner, weak: spec.Weak,
		disks: []cappedDisk{{bytes: spec.Limits.DiskBytes, mode: 0o755}},
	}
	if !askedFor(spec, "/tmp") {
		p.disks = append(p.disks, cappedDisk{bytes: spec.Limits.DiskBytes, mode: 0o1777})
	}
	for _, m := range spec.Mounts {
		if m.Source != "" {
			p.binds = append(p.binds, m)
			continue
		}
		if !m.Around.IsZero() {
			p.hidden = append(p.hidden, m)
		}
		mode := m.Mode
		if mode == 0 {
			mode = 0o755
		}
		p.disks = append(p.disks, cappedDisk{bytes: m.SizeBytes, mode: mode})
	}
	return p
}

// askedFor tells whether a spec has a mount of its own at a place.
func askedFor(spec engine.Spec, at string) bool {
	for _, m := range spec.Mounts {
		if filepath.Clean(m.Destination) == at {
			return true
		}
	}
	return false
}

// markTraces notes that the service may have something of ours.
func (e *Engine) markTraces() error {
	return os.WriteFile(e.marker(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
}

// marked tells whether it may: also where nobody can tell.
func (e *Engine) marked() bool {
	_, err := os.Stat(e.marker())
	return !errors.Is(err, os.ErrNotExist)
}
