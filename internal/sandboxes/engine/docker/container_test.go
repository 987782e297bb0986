package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// described is a container's description, of a sandbox with limits and a mount.
func described(t *testing.T, r runtimeOf) (e *Engine, host *container.HostConfig) {
	t.Helper()
	e = New(Config{StateDir: t.TempDir(), Place: "/place"}, nil)
	spec := engine.Spec{
		ID: "sb", Hostname: "box", Init: []string{"/init"},
		Limits: engine.Limits{CPU: 1.5, MemoryBytes: 512 << 20, DiskBytes: 1 << 30, Pids: 100},
		Mounts: []engine.Mount{{Source: "/host/data", Destination: "/data", ReadOnly: true}},
	}
	entries := []rootEntry{{name: "usr", dir: true}, {name: "bin", link: "usr/bin"}, {name: "proc", dir: true}, {name: "sys", dir: true}, {name: "dev", dir: true}}
	c := e.container(spec, r, e.ground("sb"), entries, "sha256:skeleton", 4096)
	if c.Config.Image != "sha256:skeleton" || c.Config.User != "0:0" || c.Config.Labels[labelSandbox] != "sb" || c.Config.Labels[labelInstallation] != e.installation {
		t.Errorf("it is %+v", c.Config)
	}
	return e, c.HostConfig
}

// TestAContainerIsDescribedWithItsWalls: whatever a service does with a description, this one asks
// for every wall and every limit, with both kinds of runtimes. The suite and the containment tests
// show with a real service what they are worth.
func TestAContainerIsDescribedWithItsWalls(t *testing.T) {
	t.Parallel()
	for _, r := range []runtimeOf{{name: "runc"}, {name: "walled", ownKernel: true}} {
		e, host := described(t, r)
		if host.Runtime != r.name || host.NetworkMode != "none" || host.IpcMode != "private" || host.CgroupnsMode != "private" || host.PidMode != "" || host.UTSMode != "" || host.UsernsMode != "" {
			t.Errorf("%s: its namespaces: %+v", r.name, host)
		}
		if host.Privileged || !host.ReadonlyRootfs || host.AutoRemove || len(host.Binds)+len(host.VolumesFrom)+len(host.Devices)+len(host.PortBindings)+len(host.GroupAdd) > 0 {
			t.Errorf("%s: what it may: %+v", r.name, host)
		}
		if !slices.Equal(host.SecurityOpt, []string{"no-new-privileges"}) { // and the service's own filter of system calls
			t.Errorf("%s: %q", r.name, host.SecurityOpt)
		}
		if !slices.Equal(host.CapDrop, []string{"ALL"}) {
			t.Errorf("%s: it loses %q", r.name, host.CapDrop)
		}
		for _, c := range host.CapAdd {
			if !slices.Contains([]string{"NET_BIND_SERVICE", "SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER", "NET_ADMIN", "SETPCAP"}, c) {
				t.Errorf("%s: it has the capability %s", r.name, c)
			}
		}
		if host.Memory != 512<<20 || host.MemorySwap != 512<<20 || host.NanoCPUs != 1_500_000_000 || host.PidsLimit == nil || *host.PidsLimit < 100 || *host.PidsLimit > 1000 || host.ShmSize != 256<<20 {
			t.Errorf("%s: its limits: %+v", r.name, host.Resources)
		}
		limits := map[string]int64{}
		for _, l := range host.Ulimits {
			limits[l.Name] = l.Hard
		}
		if limits["nofile"] != 4096 || limits["core"] != 0 || len(limits) != 2 {
			t.Errorf("%s: its ulimits: %v", r.name, limits)
		}
		for _, path := range []string{"/sys", "/proc/kcore", "/proc/kallsyms", "/proc/keys", "/proc/modules", "/proc/cmdline", "/proc/timer_list"} {
			if !slices.Contains(host.MaskedPaths, path) {
				t.Errorf("%s: it sees %s", r.name, path)
			}
		}
		for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs"} {
			if !slices.Contains(host.ReadonlyPaths, path) {
				t.Errorf("%s: it writes to %s", r.name, path)
			}
		}
		if run := host.Tmpfs["/run"]; !strings.Contains(run, "nosuid") || !strings.Contains(run, "nodev") || !strings.Contains(run, "size=") {
			t.Errorf("%s: /run is %q", r.name, run)
		}
		place := e.ground("sb").place + "/"
		for _, m := range host.Mounts {
			if m.Type != mount.TypeBind || !strings.HasPrefix(m.Source, place) || m.BindOptions == nil || m.BindOptions.Propagation != mount.PropagationRPrivate || m.ReadOnly != (m.Target == "/data") {
				t.Errorf("%s: it sees %+v", r.name, m)
			}
			if kernels(strings.TrimPrefix(m.Target, "/")) {
				t.Errorf("%s: the template has %s", r.name, m.Target)
			}
		}
	}
}
