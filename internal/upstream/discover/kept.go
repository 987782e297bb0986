package discover

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/upstream"
)

// kept is the file's content.
type kept struct {
	Config upstream.Config `json:"config"`
	Inputs string          `json:"inputs,omitempty"` // digest of what discovery looked at
}

// Current returns the Python upstream: the kept one as long as what discovery
// looks at (the client's variables and files) has not changed, else a newly
// discovered one, which is kept with the file hosts learnt so far. If there is
// no pip to ask any more, what is kept stays in force.
func Current(ctx context.Context, dir string, env []string) (upstream.Config, error) {
	old, loadErr := read(dir, pkgref.Python)
	if loadErr != nil && !errors.Is(loadErr, fault.ErrNotFound) {
		return upstream.Config{}, loadErr
	}
	now := inputs(env)
	if loadErr == nil && old.Inputs == now {
		return old.Config, nil
	}
	found, err := Python(ctx, env)
	if err != nil {
		if loadErr == nil && errors.Is(err, fault.ErrUnavailable) {
			return old.Config, nil
		}
		return upstream.Config{}, err
	}
	if found.Index == old.Config.Index {
		found.FileHosts = old.Config.FileHosts
	}
	return found, write(dir, kept{found, now})
}

// Load returns all kept upstreams; fault.ErrNotFound if there are none.
func Load(dir string) ([]upstream.Config, error) {
	var all []upstream.Config
	for _, ecosystem := range ecosystems() {
		k, err := read(dir, ecosystem)
		switch {
		case errors.Is(err, fault.ErrNotFound):
		case err != nil:
			return nil, err
		default:
			all = append(all, k.Config)
		}
	}
	if len(all) == 0 {
		return nil, fault.New(fault.ErrNotFound, "no upstream was found yet")
	}
	return all, nil
}

// Save keeps upstreams, with mode 0600, for later starts; an ecosystem that is
// not among them keeps what it has.
func Save(dir string, all ...upstream.Config) error {
	for _, c := range all {
		old, err := read(dir, c.Ecosystem)
		if err != nil && !errors.Is(err, fault.ErrNotFound) {
			return err
		}
		if err := write(dir, kept{c, old.Inputs}); err != nil {
			return err
		}
	}
	return nil
}

func ecosystems() []pkgref.Ecosystem {
	return []pkgref.Ecosystem{pkgref.Python, pkgref.Node, pkgref.Go, pkgref.Rust}
}

func file(dir string, ecosystem pkgref.Ecosystem) (string, error) {
	if !slices.Contains(ecosystems(), ecosystem) {
		return "", fault.Invalid("%q is no ecosystem", ecosystem)
	}
	return filepath.Join(dir, "upstream-"+string(ecosystem)+".json"), nil
}

func read(dir string, ecosystem pkgref.Ecosystem) (kept, error) {
	path, err := file(dir, ecosystem)
	if err != nil {
		return kept{}, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, fault.New(fault.ErrNotFound, "no upstream for %s was found yet", ecosystem)
	}
	if err != nil {
		return kept{}, fault.Wrap(fault.ErrUnavailable, err, "the kept upstream %s cannot be read", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return kept{}, fault.New(fault.ErrForbidden, "the kept upstream %s may hold credentials and can be read by others: remove it, and it is found anew", path)
	}
	raw, err := readAtMost(path, maxBundle*2)
	if err != nil {
		return kept{}, fault.Wrap(fault.ErrUnavailable, err, "the kept upstream %s cannot be read", path)
	}
	var k kept
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&k); err != nil || k.Config.Index == "" {
		return kept{}, fault.New(fault.ErrUnavailable, "the kept upstream %s is damaged: remove it, and it is found anew", path)
	}
	return k, nil
}

func write(dir string, k kept) error {
	path, err := file(dir, k.Config.Ecosystem)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	unsaved := func(err error) error {
		return fault.Wrap(fault.ErrUnavailable, err, "the upstream cannot be kept in %s", dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return unsaved(err)
	}
	f, err := os.CreateTemp(dir, ".upstream-") // mode 0600
	if err != nil {
		return unsaved(err)
	}
	_, err = f.Write(raw)
	if err := errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return unsaved(err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		_ = os.Remove(f.Name())
		return unsaved(err)
	}
	return nil
}

// inputs is a digest of what discovery depends on: variables by value, files
// by size and time. The values themselves are not kept.
func inputs(env []string) string {
	h := sha256.New()
	var lines []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, "PIP_") || strings.HasPrefix(upper, "UV_") || strings.HasSuffix(upper, "_PROXY") ||
			slices.Contains([]string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC", "HOME", "PATH", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS"}, upper) {
			lines = append(lines, fmt.Sprintf("%q\n", pair))
		}
	}
	home := value(env, "HOME")
	for _, path := range []string{
		"/etc/pip.conf", "/etc/xdg/pip/pip.conf", filepath.Join(home, ".pip/pip.conf"), filepath.Join(home, ".config/pip/pip.conf"),
		filepath.Join(value(env, "XDG_CONFIG_HOME"), "pip/pip.conf"), value(env, "PIP_CONFIG_FILE"), filepath.Join(value(env, "VIRTUAL_ENV"), "pip.conf"),
		filepath.Join(home, ".netrc"), value(env, "NETRC"), value(env, "PIP_CERT"), value(env, "SSL_CERT_FILE"), value(env, "REQUESTS_CA_BUNDLE"),
	} {
		if info, err := os.Stat(path); err == nil {
			lines = append(lines, fmt.Sprintf("%q %d %d\n", path, info.Size(), info.ModTime().UnixNano()))
		}
	}
	slices.Sort(lines)
	for _, line := range lines {
		_, _ = h.Write([]byte(line))
	}
	return hex.EncodeToString(h.Sum(nil))
}
