package docker

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/internal/engine"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// pretender is a daemon that answers questions about itself, and makes nothing.
type pretender struct {
	component string
	security  []string
	// inspect says of a container what is asked for the nth time, from 0 on; nil: nothing.
	inspect func(n int) (status int, body string)
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
		if r := proved(name, info, false); r.wall != walls[0] || r.ownKernel || len(r.environment()) == 0 {
			t.Errorf("%s with the host's kernel: %+v", name, r)
		}
		if r := proved(name, info, true); r.wall != walls[1] || !r.ownKernel || len(r.environment()) != 0 {
			t.Errorf("%s with its own kernel: %+v", name, r)
		}
	}
}

// TestWhatAProbeMustSee: a container that shows a network, a root that can be written to, or
// the host's kernel without a filter, is none for sandboxes.
func TestWhatAProbeMustSee(t *testing.T) {
	good := seen{Kernel: hostKernel(), Interfaces: []string{"lo"}, Status: "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\n"}
	if err := good.check(); err != nil {
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
		if err := s.check(); err == nil {
			t.Errorf("%s is good enough", name)
		}
	}
}

// TestASkeletonIsTheSame: the same names are the same image, whatever their order, and no
// directory is missing that the service mounts on.
func TestASkeletonIsTheSame(t *testing.T) {
	a, b := entry{name: "usr", dir: true}, entry{name: "bin", link: "usr/bin"}
	first, err := skeletonTar([]entry{a, b})
	if err != nil {
		t.Fatal(err)
	}
	second, err := skeletonTar([]entry{b, a})
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of the same names differ (%v)", err)
	}
	other, err := skeletonTar([]entry{a})
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

// TestALayerInAnArchive: all that a writable layer may have is the same after a way through
// an archive, with the marks of what was deleted and hidden.
func TestALayerInAnArchive(t *testing.T) {
	from, to, archive := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "a.tar")
	fill(t, from)
	if err := pack(from, archive); err != nil {
		t.Fatal(err)
	}
	if err := unpack(archive, to); err != nil {
		t.Fatal(err)
	}
	before, after := describe(t, from), describe(t, to)
	if before != after {
		t.Errorf("it was\n%s\nand is\n%s", before, after)
	}
	if !strings.Contains(after, "hides=true") || !strings.Contains(after, "char") || !strings.Contains(after, "links=2") {
		t.Errorf("INCONCLUSIVE: nothing of what is special: %s", after)
	}
}

func fill(t *testing.T, dir string) {
	t.Helper()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(at("home/agent"), 0o755),
		os.WriteFile(at("home/agent/file"), bytes.Repeat([]byte("content "), 5000), 0o640),
		unix.Chmod(at("home/agent/file"), 0o4751),
		os.Link(at("home/agent/file"), at("home/second")),
		os.Symlink("/etc/shadow", at("home/link")),
		unix.Mkfifo(at("home/pipe"), 0o600),
		unix.Mknod(at("home/deleted"), unix.S_IFCHR, 0),
		unix.Setxattr(at("home"), opaque, []byte("y"), 0),
		os.Chown(at("home/agent"), 1000, 1001),
		os.Lchown(at("home/link"), 7, 8),
		os.Chtimes(at("home/agent"), time.Unix(5, 0), time.Unix(6, 0)),
		unix.Chmod(dir, 0o711),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// describe is all of a tree, as text.
func describe(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		kind := map[uint32]string{unix.S_IFCHR: "char", unix.S_IFDIR: "dir", unix.S_IFREG: "file", unix.S_IFLNK: "link", unix.S_IFIFO: "pipe"}[st.Mode&unix.S_IFMT]
		link, _ := os.Readlink(path)
		var content []byte
		if kind == "file" {
			if content, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		links := uint64(0)
		if kind == "file" {
			links = uint64(st.Nlink) //nolint:unconvert // its type differs between processors
		}
		line, err := json.Marshal([]any{name, kind, st.Mode, st.Uid, st.Gid, st.Rdev, link, content})
		if err != nil {
			return err
		}
		b.Write(line)
		if kind == "dir" {
			b.WriteString(" hides=" + fmt.Sprint(isOpaque(path)))
		}
		if links > 1 {
			b.WriteString(" links=2")
		}
		if name == "home/agent" && st.Mtim.Sec != 6 {
			b.WriteString(" its time is lost")
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func isOpaque(dir string) bool {
	value := make([]byte, 8)
	n, err := unix.Lgetxattr(dir, opaque, value)
	return err == nil && string(value[:n]) == "y"
}

// TestNothingOutsideIsArchived: what a sandbox that was not held puts in the place of what
// was seen a moment ago is not followed.
func TestNothingOutsideIsArchived(t *testing.T) {
	outside, layer := t.TempDir(), t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(outside, "f"), []byte("secret"), 0o600), os.Mkdir(filepath.Join(outside, "d"), 0o700),
		os.Mkdir(filepath.Join(layer, "dir"), 0o700), os.WriteFile(filepath.Join(layer, "dir", "f"), []byte("public"), 0o600),
		os.Mkdir(filepath.Join(layer, "dir", "d"), 0o700), os.WriteFile(filepath.Join(layer, "was"), []byte("public"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(layer)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	entries := func(dir string) map[string]os.DirEntry {
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]os.DirEntry{}
		for _, e := range found {
			all[e.Name()] = e
		}
		return all
	}
	seen, below := entries(layer), entries(filepath.Join(layer, "dir"))
	var out bytes.Buffer
	p := packing{w: tar.NewWriter(&out), layer: root, seen: map[uint64]string{}}
	if err := p.add("dir/f", below["f"], nil); err != nil {
		t.Fatalf("INCONCLUSIVE: nothing is archived: %v", err)
	}
	if err := errors.Join(
		os.Rename(filepath.Join(layer, "dir"), filepath.Join(layer, "away")), os.Symlink(outside, filepath.Join(layer, "dir")),
	); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]os.DirEntry{"dir/f": below["f"], "dir/d": below["d"]} {
		if err := p.add(name, e, nil); err == nil {
			t.Errorf("%s was archived", name)
		}
	}
	// Between its Lstat and its opening.
	var st syscall.Stat_t
	if err := errors.Join(syscall.Lstat(filepath.Join(layer, "was"), &st), os.Remove(filepath.Join(layer, "was"))); err != nil {
		t.Fatal(err)
	}
	for kind, put := range map[string]func(string) error{
		"a pipe":      func(at string) error { return unix.Mkfifo(at, 0o600) },
		"a link":      func(at string) error { return os.Symlink(filepath.Join(outside, "f"), at) },
		"a directory": func(at string) error { return os.Mkdir(at, 0o700) },
	} {
		at := filepath.Join(layer, "was")
		if err := put(at); err != nil {
			t.Fatal(err)
		}
		if kind == "a pipe" { // with somebody at its other end
			end, err := os.OpenFile(at, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer end.Close()
			if _, err := end.WriteString("public"); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.addFile(&tar.Header{Name: seen["was"].Name()}, &st); err == nil {
			t.Errorf("%s was archived as a file", kind)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Error("what is outside is in the archive")
	}
}

// TestNoNameLeadsOutOfALayer: an archive with a name or a link that leads elsewhere is not
// unpacked there.
func TestNoNameLeadsOutOfALayer(t *testing.T) {
	outside := t.TempDir()
	for name, headers := range map[string][]header{
		"a path above":       {{name: "../escaped", kind: '0'}},
		"an absolute path":   {{name: outside + "/escaped", kind: '0'}},
		"through a link":     {{name: "link", kind: '2', link: outside}, {name: "link/escaped", kind: '0'}},
		"a hard link out":    {{name: "hard", kind: '1', link: "../../etc/passwd"}},
		"a device of a disk": {{name: "disk", kind: '4'}},
	} {
		archive := filepath.Join(t.TempDir(), "a.tar")
		writeArchive(t, archive, headers)
		if err := unpack(archive, t.TempDir()); err == nil {
			t.Errorf("%s was unpacked", name)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside there is %v (%v)", left, err)
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
