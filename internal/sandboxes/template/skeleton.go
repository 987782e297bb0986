package template

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// skeleton makes the part of the host template that is not mounted: folders
// to mount on, a generated /etc, and the sandbox user's home.
type skeleton struct {
	store  *Store
	host   string // the host's root
	dir    string // the skeleton's root
	python string // the host's python3 inside, or empty
}

func (k *skeleton) makeSkeleton(view hostView) error {
	folders := []string{
		"dev", "proc", "sys", "run", "tmp", "var/tmp", "var/lib", "var/log", "mnt", "root",
		"workspace", ".cofferdam/bin", "etc/profile.d", agentHome,
	}
	for _, name := range append(folders, view.mounts...) {
		if err := os.MkdirAll(filepath.Join(k.dir, name), 0o755); err != nil { //nolint:gosec // a root filesystem
			return err
		}
	}
	for path, target := range view.links {
		if err := os.Symlink(target, filepath.Join(k.dir, path)); err != nil {
			return err
		}
	}
	steps := []func() error{k.accounts, k.copied, k.makeVenv, k.makeHomes}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// accounts writes what names users, hosts and services: generated, for the
// host's own files tell who works there.
func (k *skeleton) accounts() error {
	files := map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n" + "agent:x:1000:1000:agent:" + agentHome + ":" + k.shellPath() + "\n" +
			"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"etc/group":         "root:x:0:\ntty:x:5:\nagent:x:1000:\nnogroup:x:65534:\n",
		"etc/nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nprotocols: files\nservices: files\n",
		"etc/hosts":         "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		"etc/resolv.conf":   "",
		"etc/shells":        "/bin/sh\n" + k.shellPath() + "\n",
		"etc/profile": `export PATH="${VIRTUAL_ENV:+$VIRTUAL_ENV/bin:}$HOME/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/.cofferdam/bin"` + "\n" +
			`for f in /etc/profile.d/*.sh; do [ ! -r "$f" ] || . "$f"; done` + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // public by nature
			return err
		}
	}
	return nil
}

func (k *skeleton) shellPath() string {
	if _, err := os.Stat(filepath.Join(k.host, "usr/bin/bash")); err == nil {
		return "/usr/bin/bash"
	}
	return "/bin/sh"
}

// makeVenv makes a virtual environment by hand, over the host's own python3 and
// its packages: so pip and uv install without a word of configuration, though
// the host's python is read-only. Nothing is run for it.
func (k *skeleton) makeVenv() error {
	python, version := k.findPython()
	if python == "" {
		return nil
	}
	k.python = python
	dir := filepath.Join(k.dir, agentHome, ".venv")
	packages := filepath.Join(dir, "lib", "python"+version, "site-packages")
	for _, d := range []string{filepath.Join(dir, "bin"), packages} {
		if err := os.MkdirAll(d, 0o755); err != nil { //nolint:gosec // a root filesystem
			return err
		}
	}
	for _, link := range [][2]string{{python, "python3"}, {"python3", "python"}, {"python3", "python" + version}} {
		if err := os.Symlink(link[0], filepath.Join(dir, "bin", link[1])); err != nil {
			return err
		}
	}
	config := "home = " + filepath.Dir(python) + "\ninclude-system-site-packages = true\nversion = " + version + "\n"
	if err := os.WriteFile(filepath.Join(dir, "pyvenv.cfg"), []byte(config), 0o644); err != nil { //nolint:gosec // public by nature
		return err
	}
	// It says itself what is missing where the host's python has no pip.
	pip := "#!" + agentHome + "/.venv/bin/python3\nimport runpy\nrunpy.run_module('pip', run_name='__main__', alter_sys=True)\n"
	for _, name := range []string{"pip", "pip3"} {
		if err := os.WriteFile(filepath.Join(dir, "bin", name), []byte(pip), 0o755); err != nil { //nolint:gosec // a program
			return err
		}
	}
	return nil
}

// findPython returns the path inside of the host's python3 and its "3.N".
func (k *skeleton) findPython() (path, version string) {
	for _, dir := range []string{"/usr/local/bin", "/usr/bin"} {
		link := filepath.Join(k.host, dir, "python3")
		target, err := filepath.EvalSymlinks(link)
		if err != nil {
			continue
		}
		inside, err := filepath.Rel(k.host, target)
		// One that leads into a home is not there inside.
		if err != nil || !strings.HasPrefix(inside, "usr/") {
			continue
		}
		if v, ok := strings.CutPrefix(filepath.Base(target), "python"); ok && strings.HasPrefix(v, "3.") {
			return dir + "/python3", v
		}
	}
	return "", ""
}

// makeHomes gives the sandbox's user what is his. A builder that is not root can't,
// so there everybody may write these two folders, of a sandbox with one user.
func (k *skeleton) makeHomes() error {
	for _, name := range []string{"tmp", "var/tmp"} {
		if err := os.Chmod(filepath.Join(k.dir, name), fs.ModeSticky|0o777); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(k.dir, "root"), 0o700); err != nil { //nolint:gosec // a folder
		return err
	}
	for _, name := range []string{agentHome, "workspace"} {
		err := filepath.WalkDir(filepath.Join(k.dir, name), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if os.Geteuid() == 0 {
				return os.Lchown(path, 1000, 1000) //nolint:gosec // nobody else has this tree yet, and links are not followed
			}
			if entry.IsDir() {
				return os.Chmod(path, 0o777) //nolint:gosec // see above
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// copied takes the few files of /etc that programs need. The list has nothing that is secret, names
// the host, or configures clients (whose files hold credentials).
func (k *skeleton) copied() error {
	names := []string{
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "mime.types", "magic", "magic.mime",
		"services", "protocols", "rpc", "networks", "host.conf", "gai.conf", "os-release", "debian_version", "redhat-release", "fedora-release",
		"system-release", "lsb-release", "arch-release", "alpine-release", "inputrc", "terminfo", "locale.conf", "fonts", "perl", "skel",
		"ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "ssl/ca-bundle.pem", "ca-certificates.conf", "ca-certificates/extracted",
		"pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust/extracted", "crypto-policies", "vim", "ImageMagick-6",
	}
	java, _ := filepath.Glob(filepath.Join(k.host, "etc/java*"))
	for _, path := range java {
		names = append(names, filepath.Base(path))
	}
	for _, name := range names {
		if err := k.takeCopy(filepath.Join("etc", name)); err != nil {
			return err
		}
	}
	return nil
}

// takeCopy copies a file, a link or a folder. Only what everybody on the host may
// read is taken, and no private key or snake-oil certificate.
func (k *skeleton) takeCopy(name string) error {
	return filepath.WalkDir(filepath.Join(k.host, name), func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(k.host, path)
		if err != nil {
			return err
		}
		to := filepath.Join(k.dir, rel)
		if isRefused(entry.Name()) {
			if info.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		switch {
		case info.IsDir() && info.Mode().Perm()&0o005 == 0o005:
			return os.MkdirAll(to, 0o755) //nolint:gosec // a root filesystem
		case info.IsDir():
			return fs.SkipDir
		case info.Mode()&fs.ModeSymlink != 0:
			return k.takeLink(path, rel, to)
		case info.Mode().IsRegular() && info.Mode().Perm()&0o004 != 0:
			return k.takeFile(path, to)
		}
		return nil
	})
}

// takeLink keeps a link that leads to something that is there inside, and
// leaves out any other.
func (k *skeleton) takeLink(path, rel, to string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	absolute := target
	if !filepath.IsAbs(target) {
		absolute = filepath.Join("/", filepath.Dir(rel), target)
	}
	taken := []string{"/usr/", "/opt/", "/bin/", "/lib", "/etc/alternatives/", "/etc/ssl/certs/", "/etc/pki/", "/etc/java", "/etc/crypto-policies/"}
	leads := slices.ContainsFunc(taken, func(p string) bool { return strings.HasPrefix(absolute, p) })
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a root filesystem
		return err
	}
	if leads {
		return os.Symlink(target, to)
	}
	return nil
}

func (k *skeleton) takeFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a root filesystem
		return err
	}
	return copyFile(from, to, 0o644)
}

// isRefused names what is not taken wherever it lies.
func isRefused(name string) bool {
	lower := strings.ToLower(name)
	return lower == "private" || strings.HasSuffix(lower, ".key") || strings.Contains(lower, "snakeoil") || strings.Contains(lower, "password")
}

// rootsBundle is the path inside of the system's CA bundle; empty if none.
func (k *skeleton) rootsBundle() string {
	for _, path := range []string{
		"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
		"/etc/ca-certificates/extracted/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	} {
		if _, err := os.Stat(filepath.Join(k.dir, path)); err == nil {
			return path
		}
	}
	return ""
}
