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
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
)

// keptSettings is the file's content.
type keptSettings struct {
	Config upstream.Config `json:"config"`
	Inputs string          `json:"inputs,omitempty"` // digest of what discovery looked at
}

// Missing is an ecosystem without an upstream, and why it has none.
type Missing struct {
	Ecosystem pkgref.Ecosystem
	Why       error
}

// Found are the upstreams of this host, each ecosystem's in a fixed order.
type Found struct {
	Upstreams []upstream.Config
	Missing   []Missing
}

// Has tells whether an ecosystem's upstream was found.
func (f Found) Has(ecosystem pkgref.Ecosystem) bool {
	return slices.ContainsFunc(f.Upstreams, func(c upstream.Config) bool { return c.Ecosystem == ecosystem })
}

// Current returns the upstreams of all ecosystems, or of those given: for each
// the kept one as long as what discovery looks at (the client's variables and
// files) has not changed, else a newly discovered one, which is kept with the
// file hosts learnt so far. If there is no client to ask any more, what is kept
// stays in force. The host's clients are asked at the same time.
func (all Clients) Current(ctx context.Context, dir string, env []string, only ...pkgref.Ecosystem) Found {
	if len(only) == 0 {
		only = all.Ecosystems()
	}
	configs, failures := make([]upstream.Config, len(only)), make([]error, len(only))
	var asked sync.WaitGroup
	for i, ecosystem := range only {
		safego.In(&asked, func() {
			failures[i] = safego.Try(func() (err error) {
				configs[i], err = all.currentConfig(ctx, dir, env, ecosystem)
				return err
			})
		})
	}
	asked.Wait()
	var f Found
	for i, ecosystem := range only {
		if failures[i] != nil {
			f.Missing = append(f.Missing, Missing{ecosystem, failures[i]})
			continue
		}
		f.Upstreams = append(f.Upstreams, configs[i])
	}
	return f
}

func (all Clients) currentConfig(ctx context.Context, dir string, env []string, ecosystem pkgref.Ecosystem) (upstream.Config, error) {
	c, err := all.Of(ecosystem)
	if err != nil {
		return upstream.Config{}, err
	}
	old, loadErr := readKept(dir, ecosystem)
	if loadErr != nil && !errors.Is(loadErr, fault.ErrNotFound) {
		return upstream.Config{}, loadErr
	}
	now := c.inputs(env)
	if loadErr == nil && old.Inputs == now {
		return old.Config, nil
	}
	found, err := c.askHost(ctx, env)
	if err != nil {
		if loadErr == nil && errors.Is(err, fault.ErrUnavailable) {
			return old.Config, nil
		}
		return upstream.Config{}, err
	}
	if found.Index == old.Config.Index {
		found.FileHosts = old.Config.FileHosts
	}
	return found, writeKept(dir, keptSettings{found, now})
}

// Save keeps upstreams, with mode 0600, for later starts; an ecosystem that is
// not among them keeps what it has.
func Save(dir string, all ...upstream.Config) error {
	for _, c := range all {
		old, err := readKept(dir, c.Ecosystem)
		if err != nil && !errors.Is(err, fault.ErrNotFound) {
			return err
		}
		if err := writeKept(dir, keptSettings{c, old.Inputs}); err != nil {
			return err
		}
	}
	return nil
}

func keptFile(dir string, ecosystem pkgref.Ecosystem) (string, error) {
	if !slices.Contains(pkgref.Ecosystems(), ecosystem) {
		return "", fault.Invalid("%q is no ecosystem", ecosystem)
	}
	return filepath.Join(dir, "upstream-"+string(ecosystem)+".json"), nil
}

func readKept(dir string, ecosystem pkgref.Ecosystem) (keptSettings, error) {
	path, err := keptFile(dir, ecosystem)
	if err != nil {
		return keptSettings{}, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return keptSettings{}, fault.New(fault.ErrNotFound, "no upstream for %s was found yet", ecosystem)
	}
	if err != nil {
		return keptSettings{}, fault.Wrap(fault.ErrUnavailable, err, "the kept upstream %s cannot be read", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return keptSettings{}, fault.New(fault.ErrForbidden, "the kept upstream %s may hold credentials and can be read by others: remove it, and it is found anew", path)
	}
	raw, err := ReadAtMost(path, maxBundle*2)
	if err != nil {
		return keptSettings{}, fault.Wrap(fault.ErrUnavailable, err, "the kept upstream %s cannot be read", path)
	}
	var k keptSettings
	strict := json.NewDecoder(bytes.NewReader(raw))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&k); err != nil || k.Config.Index == "" {
		return keptSettings{}, fault.New(fault.ErrUnavailable, "the kept upstream %s is damaged: remove it, and it is found anew", path)
	}
	return k, nil
}

func writeKept(dir string, k keptSettings) error {
	path, err := keptFile(dir, k.Config.Ecosystem)
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
	if err := atomicfile.Replace(path, raw, 0o600); err != nil {
		return unsaved(err)
	}
	return nil
}

// inputs is a digest of what discovery depends on: variables by value, files
// by size and time. The values themselves are not kept.
func (c Client) inputs(env []string) string {
	h := sha256.New()
	var lines []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		upper := strings.ToUpper(name)
		if c.Variables(upper) || strings.HasSuffix(upper, "_PROXY") ||
			slices.Contains([]string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NETRC", "HOME", "PATH"}, upper) {
			lines = append(lines, fmt.Sprintf("%q\n", pair))
		}
	}
	shared := []string{
		filepath.Join(Value(env, "HOME"), ".netrc"), Value(env, "NETRC"), Value(env, "SSL_CERT_FILE"), Value(env, "REQUESTS_CA_BUNDLE"),
	}
	for _, path := range append(c.Files(env), shared...) {
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
