package template

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath/executable"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// imaginedHost is a host with a merged /usr, people, secrets and tools.
func imaginedHost(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, mode := range map[string]os.FileMode{
		"usr/bin/bash": 0o755, "usr/bin/python3.12": 0o755, "usr/lib/os-release": 0o644, "opt/tool/bin/tool": 0o755, "usr/local/bin/own": 0o755,
		"opt/people/eve/secret": 0o644, "home/bob/.ssh/id": 0o644, "root/.bashrc": 0o644,
		"etc/os-release": 0o644, "etc/ld.so.cache": 0o644, "etc/ssl/certs/ca-certificates.crt": 0o644, "etc/ssl/openssl.cnf": 0o644,
		"etc/ssl/private/site.key": 0o644, "etc/ssl/certs/ssl-cert-snakeoil.pem": 0o644, "etc/shadow": 0o644, "etc/ssh/ssh_host_rsa_key": 0o644,
		"etc/hostname": 0o644, "etc/pip.conf": 0o644, "etc/npmrc": 0o644, "etc/machine-id": 0o644, "etc/environment": 0o644, "etc/gitconfig": 0o644,
		"etc/mime.types": 0o644, "etc/services": 0o600, "etc/java-17/security/java.security": 0o644, "etc/java-17/management/jmxremote.password": 0o644,
		"etc/krb5.keytab": 0o644, "var/lib/secret": 0o644,
	} {
		put(t, filepath.Join(root, path), "SECRET-OR-NOT "+path, mode)
	}
	put(t, filepath.Join(root, "etc/passwd"), `root:x:0:0::/root:/bin/bash
games:x:5:60::/usr/games:/usr/sbin/nologin
eve:x:1001:1001::/opt/people/eve:/bin/bash
bob:x:1000:1000::/home/bob:/bin/bash
nobody:x:65534:65534::/opt/tool:/bin/false
`, 0o644)
	if err := os.MkdirAll(filepath.Join(root, "usr/games"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"bin": "usr/bin", "lib64": "usr/lib64", "usr/bin/python3": "python3.12", "etc/alternatives/vi": "/usr/bin/vim",
		"etc/ssl/certs/root.pem": "/usr/share/ca-certificates/root.crt", "etc/ssl/certs/evil.pem": "/root/.bashrc",
		"etc/localtime": "/usr/share/zoneinfo/UTC",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestHostShowsProgramsAndNoSecrets(t *testing.T) {
	t.Parallel()
	root := imaginedHost(t)
	s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{HostRoot: root})
	got, err := s.Get(t.Context(), NameHost)
	if err != nil {
		t.Fatal(err)
	}
	if got.Roots != "/etc/ssl/certs/ca-certificates.crt" || got.User != "agent" {
		t.Errorf("%+v", got)
	}
	wantMounts := []engine.Mount{
		{Source: filepath.Join(root, "usr"), Destination: "/usr", ReadOnly: true},
		{Source: filepath.Join(root, "opt"), Destination: "/opt", ReadOnly: true},
		{Destination: "/opt/people/eve", ReadOnly: true, SizeBytes: 4096, Mode: 0o555},
	}
	if !slices.Equal(got.Mounts, wantMounts) {
		t.Errorf("mounts %+v", got.Mounts)
	}
	shown := unpacked(t, got)
	var files []string
	err = filepath.WalkDir(shown, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(shown, path)
		if err != nil {
			return err
		}
		if !e.IsDir() {
			files = append(files, rel)
		}
		info, err := e.Info()
		if err == nil && info.Mode()&(fs.ModeDevice|fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s is %v", rel, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"bin", "lib64", "etc/passwd", "etc/group", "etc/nsswitch.conf", "etc/ld.so.cache", "etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/root.pem",
		"etc/ssl/openssl.cnf", "etc/mime.types", "etc/alternatives/vi", "etc/localtime", "etc/java-17/security/java.security", "home/agent/.venv/bin/python3",
		"home/agent/.venv/bin/pip", "home/agent/.venv/pyvenv.cfg", "etc/resolv.conf", "etc/os-release",
	} {
		if !slices.Contains(files, want) {
			t.Errorf("missing %s", want)
		}
	}
	for _, f := range files {
		for _, secret := range []string{
			"shadow", "private", "snakeoil", "ssh", "hostname", "pip.conf", "npmrc", "machine-id", "environment", "gitconfig", "password", "evil", "keytab", "bob", "eve", "services", "var/lib",
		} {
			if strings.Contains(f, secret) {
				t.Errorf("%s is shown", f)
			}
		}
	}
	passwd, err := os.ReadFile(filepath.Join(shown, "etc/passwd"))
	if err != nil || strings.Contains(string(passwd), "bob") || strings.Count(string(passwd), "\n") != 3 {
		t.Errorf("%s %v", passwd, err)
	}
}

// unpacked is what a template's root holds. Where images can be packed the host's is
// one: a folder is copied for each sandbox.
func unpacked(t *testing.T, tpl Template) string {
	t.Helper()
	if executable.System(imageTool, nil) == "" {
		if tpl.Root.Kind != engine.RootDir {
			t.Fatalf("%+v", tpl.Root)
		}
		return tpl.Root.Path
	}
	if tpl.Root.Kind != engine.RootImage || exists(filepath.Join(filepath.Dir(tpl.Root.Path), "root")) {
		t.Fatalf("the root is no image, or lies beside it: %+v", tpl.Root)
	}
	dir := filepath.Join(t.TempDir(), "shown")
	if said, err := exec.CommandContext(t.Context(), "fsck.erofs", "--extract="+dir, tpl.Root.Path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return dir
}

// TestHostImageHasItsOwners: inside, the home is the user's and the rest is root's,
// and what everybody may write to is so.
func TestHostImageHasItsOwners(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Fatal("only root can give files away")
	}
	s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{HostRoot: imaginedHost(t)})
	tpl, err := s.Get(t.Context(), NameHost)
	if err != nil {
		t.Fatal(err)
	}
	shown := unpacked(t, tpl)
	for name, want := range map[string]struct {
		owner uint32
		mode  fs.FileMode
	}{
		"etc/passwd": {0, 0o644}, "etc": {0, fs.ModeDir | 0o755}, "root": {0, fs.ModeDir | 0o700}, "tmp": {0, fs.ModeDir | fs.ModeSticky | 0o777},
		"home/agent/.venv/bin/pip": {1000, 0o755}, "home/agent": {1000, fs.ModeDir | 0o755}, "workspace": {1000, fs.ModeDir | 0o755},
	} {
		info, err := os.Lstat(filepath.Join(shown, name))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; owner != want.owner || info.Mode() != want.mode { //nolint:forcetypeassert // on Linux it is
			t.Errorf("%s: %v of %d, want %v of %d", name, info.Mode(), owner, want.mode, want.owner)
		}
	}
}

// TestHostWithoutImages: where nothing packs an image, or fails to, the folder is
// the root.
func TestHostWithoutImages(t *testing.T) {
	bin := t.TempDir()
	put(t, filepath.Join(bin, imageTool), "#!/bin/sh\necho half >\"$4\"; exit 1\n", 0o755)
	s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{HostRoot: imaginedHost(t), FindTool: useTools(t, bin)})
	tpl, err := s.Get(t.Context(), NameHost)
	if err != nil {
		t.Fatal(err)
	}
	if tpl.Root.Kind != engine.RootDir || !exists(filepath.Join(tpl.Root.Path, "etc/passwd")) || exists(filepath.Join(filepath.Dir(tpl.Root.Path), "rootfs.erofs")) {
		t.Errorf("%+v", tpl.Root)
	}
	if again, err := s.Get(t.Context(), NameHost); err != nil || !again.Created.Equal(tpl.Created) || again.Digest != tpl.Digest {
		t.Errorf("made twice: %+v %v", again, err)
	}
}

func TestHostIsMadeOnceUntilItChanges(t *testing.T) {
	t.Parallel()
	root := imaginedHost(t)
	s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{HostRoot: root})
	get := func() Template {
		t.Helper()
		got, err := s.Get(t.Context(), NameHost)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first := get()
	if again := get(); again.Digest != first.Digest || !again.Created.Equal(first.Created) {
		t.Error("made twice")
	}
	put(t, filepath.Join(root, "usr/bin/new-tool"), "", 0o755)
	changed := get()
	if changed.Digest == first.Digest {
		t.Error("a new program on the host went unnoticed")
	}
	if !exists(first.Root.Path) {
		t.Error("the root of a sandbox that may live is gone")
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 1 || all[0].Digest != changed.Digest {
		t.Errorf("%+v %v", all, err)
	}
}

// TestThisHost makes the template of the machine that the test runs on.
func TestThisHost(t *testing.T) {
	t.Parallel()
	s := NewStore(filepath.Join(t.TempDir(), "templates"), Options{})
	got, err := s.Get(t.Context(), NameHost)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Mounts) == 0 || got.Bytes > 64<<20 {
		t.Errorf("%+v", got)
	}
	shown := unpacked(t, got)
	for _, secret := range []string{"etc/shadow", "etc/ssl/private", "etc/ssh", "etc/machine-id", "etc/hostname", "etc/pip.conf"} {
		if exists(filepath.Join(shown, secret)) {
			t.Errorf("/%s is shown", secret)
		}
	}
}
