package template

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
)

// hostView is what the host template shows of a host: folders that are mounted
// read-only, links beside them, and homes inside those folders that are hidden.
type hostView struct {
	root   string            // of the host
	mounts []string          // folders of the host, shown at their own path
	links  map[string]string // path -> target, for a merged /usr
	hidden []string          // homes that lie under a mount
}

// hostTemplate returns the host template as the host is now: the kept one if nothing
// has changed, else a new one.
func (s *Store) hostTemplate(ctx context.Context) (Template, error) {
	view, err := lookAtHost(s.opt.HostRoot)
	if err != nil {
		return Template{}, err
	}
	if t, err := s.currentGeneration(NameHost); err == nil && t.Digest == view.digest(s.packsHost()) {
		return t, nil
	}
	lock, err := s.lockName(ctx, NameHost, nil)
	if err != nil {
		return Template{}, err
	}
	defer lock.releaseLock()
	if t, err := s.currentGeneration(NameHost); err == nil && t.Digest == view.digest(s.packsHost()) {
		return t, nil
	}
	return s.buildLocked(ctx, NameHost, func(Progress) {})
}

// lookAtHost finds what of a host is shown.
func lookAtHost(root string) (hostView, error) {
	v := hostView{root: root, links: map[string]string{}}
	for _, name := range []string{"usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt"} {
		info, err := os.Lstat(filepath.Join(root, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return v, fault.Wrap(fault.ErrUnavailable, err, "the host's /%s cannot be looked at", name)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(filepath.Join(root, name))
			if err != nil {
				return v, fault.Wrap(fault.ErrUnavailable, err, "the host's /%s cannot be looked at", name)
			}
			v.links["/"+name] = target
		case info.IsDir():
			v.mounts = append(v.mounts, "/"+name)
		}
	}
	if !slices.Contains(v.mounts, "/usr") {
		return v, fault.New(fault.ErrUnavailable, "this host has no folder /usr, so the host template is not available: use the template debian")
	}
	v.hidden = homesUnder(root, v.mounts)
	return v, nil
}

// homesUnder returns the homes of people (root and uids from 1000) that lie in
// a folder that is shown: nothing of any home is.
func homesUnder(root string, mounts []string) []string {
	f, err := os.Open(filepath.Join(root, "etc/passwd"))
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	var homes []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 6 {
			continue
		}
		uid, err := strconv.Atoi(fields[2])
		home := filepath.Clean(fields[5])
		if err != nil || uid == 65534 || (uid != 0 && uid < 1000) || slices.Contains(homes, home) {
			continue
		}
		info, err := os.Stat(filepath.Join(root, home))
		under := slices.ContainsFunc(mounts, func(m string) bool { return strings.HasPrefix(home, m+"/") })
		if err == nil && info.IsDir() && under {
			homes = append(homes, home)
		}
	}
	slices.Sort(homes)
	return homes
}

// hostLayout is the version of how a skeleton is made: part of the digest.
const hostLayout = "2"

// packsHost tells whether the host's root becomes an image.
func (s *Store) packsHost() bool { return s.findTool(imageTool) != "" }

// digest is over what is shown, whether that is packed into an image, and over the times that change when the host's
// programs do; it is not over the programs themselves.
func (v hostView) digest(packed bool) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "layout %s\n%v\n%v\n%v\n%v\n%d\n", hostLayout, osRelease(v.root), v.mounts, v.links, v.hidden, os.Geteuid())
	_, _ = fmt.Fprintf(h, "image %t\n", packed)
	watched := []string{
		"usr/bin", "usr/sbin", "usr/lib", "usr/local/bin", "usr/local/lib", "opt", "etc/ld.so.cache", "etc/alternatives",
		"etc/ssl/certs", "etc/ssl/certs/ca-certificates.crt", "etc/pki/ca-trust/extracted/pem", "etc/localtime", "var/lib/dpkg/status",
	}
	for _, name := range watched {
		if info, err := os.Stat(filepath.Join(v.root, name)); err == nil {
			_, _ = fmt.Fprintf(h, "%s %d\n", name, info.ModTime().UnixNano())
		}
	}
	return format(h)
}

// buildHost makes the skeleton: the generated parts of the root, and empty
// folders for the mounts. It is packed into an image, which a sandbox opens, where
// a folder would be copied for each and taken away again: that takes longer than
// all else of a short run.
func (s *Store) buildHost(ctx context.Context, made string) (Template, error) {
	root := s.opt.HostRoot
	view, err := lookAtHost(root)
	if err != nil {
		return Template{}, err
	}
	k := skeleton{store: s, host: root, dir: filepath.Join(made, "root")}
	if err := k.makeSkeleton(view); err != nil {
		return Template{}, diskFault(err, made)
	}
	t := Template{
		Name: NameHost, Digest: view.digest(s.packsHost()), User: agentUser, Home: agentHome, Roots: k.rootsBundle(),
		Env: hostEnv(k.python != ""), Created: time.Now().UTC().Truncate(time.Second),
	}
	if t.Root, t.Bytes, err = k.packImage(ctx, made); err != nil {
		return Template{}, err
	}
	for _, m := range view.mounts {
		t.Mounts = append(t.Mounts, engine.Mount{Source: filepath.Join(root, m), Destination: m, ReadOnly: true})
	}
	for _, home := range view.hidden {
		t.Mounts = append(t.Mounts, engine.Mount{Destination: home, ReadOnly: true, SizeBytes: 4096, Mode: 0o555})
	}
	return t, nil
}

func hostEnv(python bool) map[string]string {
	env := map[string]string{
		"PATH": agentHome + "/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/.cofferdam/bin",
		"HOME": agentHome,
		"LANG": "C.UTF-8",
	}
	if python {
		env["VIRTUAL_ENV"] = agentHome + "/.venv"
		env["PATH"] = agentHome + "/.venv/bin:" + env["PATH"]
	}
	return env
}
