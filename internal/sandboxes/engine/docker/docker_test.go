package docker

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// pretender is a daemon that answers questions about itself, and makes nothing.
type pretender struct {
	component string
	security  []string
	// inspect says of a container what is asked for the nth time, from 0 on; nil: nothing.
	inspect func(n int) (status int, body string)
	// other answers what else is asked; nil: it knows nothing else.
	other http.HandlerFunc
}

func (p pretender) listen(t *testing.T) (host string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "dp") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case strings.HasSuffix(r.URL.Path, "/info"):
			answer = map[string]any{"ID": "x", "OSType": "linux", "SecurityOptions": p.security, "Runtimes": map[string]any{"crooked": map[string]any{"path": "x"}}}
		case strings.HasSuffix(r.URL.Path, "/version"):
			answer = map[string]any{"Version": "1", "Components": []any{map[string]any{"Name": p.component, "Version": "1"}}}
		case strings.HasSuffix(r.URL.Path, "/_ping"):
			return
		case strings.HasSuffix(r.URL.Path, "/containers/box/json") && p.inspect != nil:
			status, body := p.inspect(int(asked.Add(1) - 1))
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
			return
		case p.other != nil:
			p.other(w, r)
			return
		default:
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return "unix://" + path
}

// TestWhatCanNotBeUsed: a daemon that is not there, or with which a promise can't be kept, is
// refused in one sentence that says what to do.
func TestWhatCanNotBeUsed(t *testing.T) {
	for name, tt := range map[string]struct{ host, want string }{
		"no daemon":    {"unix:///absent/docker.sock", "there is no Docker daemon at /absent/docker.sock: install the package docker.io and start it, or set docker.host"},
		"far away":     {"tcp://192.0.2.1:2375", "must be the socket of a Docker daemon on this host"},
		"Podman":       {pretender{component: "Podman Engine"}.listen(t), "is Podman's socket"},
		"rootless":     {pretender{security: []string{"name=seccomp,profile=default", "name=rootless"}}.listen(t), "is rootless"},
		"mapped users": {pretender{security: []string{"name=userns"}}.listen(t), "maps users (userns-remap)"},
		"no runtime":   {pretender{component: "Engine"}.listen(t), "lists none of the runtimes kata, runsc and runc"},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Config{Host: tt.host, StateDir: t.TempDir(), Place: t.TempDir()}, nil)
			e.uid = 0
			_, err := e.Capabilities(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want one line with %q", err, tt.want)
			}
			if !errors.Is(err, fault.ErrUnavailable) && !errors.Is(err, fault.ErrInvalid) {
				t.Errorf("%v has no category that says so", err)
			}
			if ids, err := e.List(t.Context()); err != nil || len(ids) > 0 {
				t.Errorf("it lists %v (%v)", ids, err)
			}
		})
	}
	e := New(Config{StateDir: t.TempDir()}, nil)
	e.uid = 1000
	if _, err := e.Capabilities(t.Context()); !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(err.Error(), "a daemon that is root") {
		t.Errorf("for a user: %v", err)
	}
}

// TestRuntimesByTheirWalls: the strongest is tried first, by its name or its program.
func TestRuntimesByTheirWalls(t *testing.T) {
	var info system.Info
	text := `{"Runtimes":{"runc":{"path":"runc"},"io.containerd.runc.v2":{"path":"runc"},"walled":{"path":"/opt/runsc"},"kata-qemu":{"runtimeType":"io.containerd.kata.v2"},"nvidia":{"path":"nvidia-container"}}}`
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		t.Fatal(err)
	}
	want := []string{"kata-qemu", "walled", "runc"}
	if got := candidates(info); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAWallIsWhatWasSeen: a runtime's name makes no wall; the kernel that answered does.
func TestAWallIsWhatWasSeen(t *testing.T) {
	var info system.Info
	if err := json.Unmarshal([]byte(`{"Runtimes":{"runc":{"path":"runc"},"walled":{"path":"/opt/runsc"},"kata":{"runtimeType":"io.containerd.kata.v2"}}}`), &info); err != nil {
		t.Fatal(err)
	}
	for name, walls := range map[string][2]engine.Wall{
		"runc":   {engine.WallContainer, engine.WallUserKernel},
		"walled": {engine.WallContainer, engine.WallUserKernel},
		"kata":   {engine.WallContainer, engine.WallEmulated},
	} {
		if r := proved(name, info, false); r.wall != walls[0] || r.ownKernel || len(r.guestEnvironment()) == 0 {
			t.Errorf("%s with the host's kernel: %+v", name, r)
		}
		if r := proved(name, info, true); r.wall != walls[1] || !r.ownKernel || len(r.guestEnvironment()) != 0 {
			t.Errorf("%s with its own kernel: %+v", name, r)
		}
	}
}

// TestWhatAProbeMustSee: a container that shows a network, a root that can be written to, or
// the host's kernel without a filter, is none for sandboxes.
func TestWhatAProbeMustSee(t *testing.T) {
	good := seen{Kernel: hostKernel(), Interfaces: []string{"lo"}, Status: "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\n"}
	if err := good.checkSeen(); err != nil {
		t.Errorf("INCONCLUSIVE: a good one: %v", err)
	}
	for name, change := range map[string]func(*seen){
		"a network":     func(s *seen) { s.Interfaces = []string{"lo", "eth0"} },
		"a root":        func(s *seen) { s.Written = true },
		"no filter":     func(s *seen) { s.Status = "NoNewPrivs:\t1\nSeccomp:\t0\n" },
		"gains rights":  func(s *seen) { s.Status = "NoNewPrivs:\t0\nSeccomp:\t2\n" },
		"tells nothing": func(s *seen) { s.Status = "" },
	} {
		s := good
		change(&s)
		if err := s.checkSeen(); err == nil {
			t.Errorf("%s is good enough", name)
		}
	}
}

// TestASkeletonIsTheSame: the same names are the same image, whatever their order, and no
// directory is missing that the service mounts on.
func TestASkeletonIsTheSame(t *testing.T) {
	a, b := rootEntry{name: "usr", dir: true}, rootEntry{name: "bin", link: "usr/bin"}
	first, err := skeletonTar([]rootEntry{a, b})
	if err != nil {
		t.Fatal(err)
	}
	second, err := skeletonTar([]rootEntry{b, a})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of the same names differ (%v)", err)
	}
	other, err := skeletonTar([]rootEntry{a})
	if err != nil || bytes.Equal(first, other) {
		t.Errorf("other names are the same archive (%v)", err)
	}
	for _, name := range []string{"proc/", "sys/", "dev/", "run/", "tmp/", "usr/", "bin"} {
		if !bytes.Contains(first, []byte(name)) {
			t.Errorf("it has no %s", name)
		}
	}
}

// TestRootOfTheHostIsNobodyInside: whoever owns a mount, the host's root is not shown as the
// sandbox's, which has the same number, and the owner is shown as the user.
func TestRootOfTheHostIsNobodyInside(t *testing.T) {
	for _, owner := range []engine.Owner{{}, {UID: 1000, GID: 1000}, {UID: 1000, GID: 1000, HostUID: 1000, HostGID: 1000}, {UID: 1000, GID: 1000, HostUID: 5, HostGID: 6}} {
		uids, gids := ownerMapping(owner)
		for _, m := range append(slices.Clone(uids), gids...) {
			if m.ContainerID == 0 && m.HostID == 0 || m.Size != 1 {
				t.Errorf("%+v: %+v", owner, m)
			}
		}
		shown := func(m specs.LinuxIDMapping) bool {
			return int(m.ContainerID) == owner.HostUID && int(m.HostID) == owner.UID
		}
		if owner.UID != 0 && !slices.ContainsFunc(uids, shown) {
			t.Errorf("%+v is shown by %+v", owner, uids)
		}
	}
}

// TestOrphansOfAProbe: the container of a probe is nobody's when its process has ended.
func TestOrphansOfAProbe(t *testing.T) {
	if !probing(prober()) {
		t.Error("this process is taken for one that has ended")
	}
	for _, label := range []string{"", "nonsense", "1 1", "0 0"} {
		if probing(label) {
			t.Errorf("%q is taken for a process that probes", label)
		}
	}
}
