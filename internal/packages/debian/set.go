package debian

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// Set are the packages that a request comes to, without those that are installed.
type Set struct {
	archive  *Archive
	owner    string
	work     string
	args     []string // of the install
	packages []Package
	order    []Action
}

// Packages are all of it.
func (s *Set) Packages() []Package { return s.packages }

// Order is what dpkg is to do with them, step by step.
func (s *Set) Order() []Action { return s.order }

// Action is what dpkg is to do next.
type Action struct {
	Unpack    []string // files
	Configure []string // names
}

// Resolve finds out what a request comes to. The set is to be closed.
func (a *Archive) Resolve(ctx context.Context, w Request) (*Set, error) {
	arch, err := w.checkRequest()
	if err != nil {
		return nil, err
	}
	sources, err := a.cfg.Sources(ctx)
	if err != nil {
		return nil, err
	}
	if w.Codename != "" && sources.Codename != "" && w.Codename != sources.Codename {
		return nil, fault.New(fault.ErrConflict, "the template is of %s, and the mirror of this host has %s: have the operator build the template again", text.Shorten(w.Codename, 40), sources.Codename)
	}
	leave, err := a.awaitTurn(ctx, w.Owner)
	if err != nil {
		return nil, err
	}
	defer leave()
	s := &Set{archive: a, owner: w.Owner}
	if err := s.prepareApt(w, arch, sources); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if err := s.resolveSet(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkRequest refuses what is no request, and returns the sandbox's architecture.
func (w Request) checkRequest() (arch string, err error) {
	if len(w.Names) == 0 || len(w.Names) > MaxNames {
		return "", fault.Invalid("an install names 1 to %d packages, and not %d", MaxNames, len(w.Names))
	}
	for _, name := range w.Names {
		if !ValidName(name) {
			return "", fault.Invalid("%q is no name of a package", text.Shorten(name, 100))
		}
	}
	return architecture(w.Installed)
}

// prepareApt writes all that apt reads.
func (s *Set) prepareApt(w Request, arch string, sources Sources) (err error) {
	unable := func(err error) error {
		return fault.Wrap(fault.ErrUnavailable, err, "the folder %s of the distribution's packages can't be written", s.archive.cfg.Dir)
	}
	if s.work, err = os.MkdirTemp(s.archive.cfg.Dir, setPattern); err != nil {
		return unable(err)
	}
	for _, dir := range []string{"", "cache", "archives", "archives/partial"} {
		path := filepath.Join(s.work, dir)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, 0o755)); err != nil { //nolint:gosec // apt fetches as another user
			return unable(err)
		}
	}
	for name, text := range map[string]string{
		"apt.conf": s.archive.configuration(s.work, arch, sources.Settings), "status": status(w.Installed),
		"sources.list": strings.Join(sources.Lines, "\n") + "\n",
	} {
		if err := os.WriteFile(filepath.Join(s.work, name), []byte(text), 0o600); err != nil { // settings may have credentials
			return unable(err)
		}
	}
	s.args = []string{"install", "--yes", "--no-remove", "-o", "APT::Install-Recommends=" + strconv.FormatBool(w.Recommends), "--"}
	s.args = append(s.args, w.Names...)
	return nil
}

// resolveSet reads the mirror's lists anew and has apt choose. It needs the turn.
func (s *Set) resolveSet(ctx context.Context) error {
	if _, err := s.archive.runApt(ctx, s.work, "update", "-qq"); err != nil {
		return aptReason(err, "the lists of the distribution's mirror can't be had or verified")
	}
	listed, err := s.archive.runApt(ctx, s.work, append([]string{"--print-uris", "-qq"}, s.args...)...)
	if err != nil {
		return aptReason(err, "the packages can't be installed")
	}
	if s.packages, err = readURIs(listed); err != nil {
		return err
	}
	order, err := s.archive.runApt(ctx, s.work, append([]string{"--simulate", "-qq"}, s.args...)...)
	if err != nil {
		return aptReason(err, "the packages can't be installed")
	}
	s.order, err = readOrder(order, s.packages)
	return err
}

// readURIs reads what apt would fetch: 'URI' FILE SIZE HASH.
func readURIs(text string) ([]Package, error) {
	var all []Package
	var bytes int64
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "'") {
			continue
		}
		p, err := readURI(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return nil, err
		}
		all, bytes = append(all, p), bytes+p.Size
		if len(all) > maxPackages || bytes > maxBytes {
			return nil, fault.New(fault.ErrExhausted, "an install may bring %d packages with %d MiB; this one needs more", maxPackages, maxBytes>>20)
		}
	}
	return all, nil
}

// uriLine has a line's parts. A URI may have a quote in it, which apt does not escape: in the password of a mirror.
var uriLine = regexp.MustCompile(`^'(\S+)' ((` + namePattern + `)_([A-Za-z0-9.+~%-]+)_(` + architecturePattern + `)\.deb) ([0-9]{1,12}) SHA256:([0-9a-f]{64})$`)

func readURI(line string) (Package, error) {
	row := uriLine.FindStringSubmatch(line)
	if row == nil {
		behind := line[strings.LastIndex(line, "' ")+1:] // the URI, which may have credentials
		return Package{}, fault.New(fault.ErrUnavailable, "the mirror's lists have a package without a digest, or with a name that is none: %s", text.Shorten(fmt.Sprintf("%q", withoutCredentials(strings.TrimSpace(behind))), 300))
	}
	version, err := url.PathUnescape(row[4])
	if err != nil || !packageVersion.MatchString(version) {
		return Package{}, fault.New(fault.ErrUnavailable, "the mirror's lists have a package with the version %q, which is none", text.Shorten(row[4], 100))
	}
	size, err := strconv.ParseInt(row[6], 10, 64)
	if err != nil {
		return Package{}, err
	}
	p := Package{Name: row[3], Version: version, Architecture: row[5], File: row[2], SHA256: row[7], Size: size}
	if from, err := url.Parse(row[1]); err == nil {
		from.User, from.RawQuery, from.Fragment = nil, "", ""
		p.URL = from.String()
	}
	return p, nil
}

// readOrder reads what apt would have dpkg do, step by step.
func readOrder(content string, packages []Package) ([]Action, error) {
	files := map[string]string{}
	for _, p := range packages {
		files[p.Name] = p.File
	}
	var all []Action
	last := func(fresh bool) *Action {
		if len(all) == 0 || fresh {
			all = append(all, Action{})
		}
		return &all[len(all)-1]
	}
	for line := range strings.Lines(content) {
		row := strings.Fields(line)
		if len(row) < 2 {
			continue
		}
		name, _, _ := strings.Cut(row[1], ":")
		file, known := files[name]
		switch {
		case row[0] == "Remv":
			return nil, fault.New(fault.ErrConflict, "the packages can't be installed without removing %s", text.Shorten(row[1], 100))
		case row[0] != "Inst" && row[0] != "Conf":
			continue
		case !known:
			return nil, fault.New(fault.ErrUnavailable, "apt would install %s, and does not say from which file", text.Shorten(row[1], 100))
		case row[0] == "Inst":
			now := last(len(all) > 0 && len(all[len(all)-1].Configure) > 0)
			now.Unpack = append(now.Unpack, file)
		default:
			now := last(false)
			now.Configure = append(now.Configure, name)
		}
	}
	return all, nil
}

// Fetch has all files of the set brought, and verifies them.
func (s *Set) Fetch(ctx context.Context) error {
	if len(s.packages) == 0 {
		return nil
	}
	leave, err := s.archive.awaitTurn(ctx, s.owner)
	if err != nil {
		return err
	}
	defer leave()
	if _, err := s.archive.runApt(ctx, s.work, append([]string{"--download-only", "-qq"}, s.args...)...); err != nil {
		return aptReason(err, "the packages can't be had from the distribution's mirror, or are others than its lists say")
	}
	for i, p := range s.packages {
		if err := s.verify(ctx, p); err != nil {
			return err
		}
		if s.packages[i].Brings, err = s.brings(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Open opens the file of a package that was fetched.
func (s *Set) Open(p Package) (io.ReadCloser, error) {
	f, err := os.OpenInRoot(filepath.Join(s.work, "archives"), p.File)
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s was not fetched", p.File)
	}
	return f, nil
}

// verify compares a file with its entry in the mirror's signed list.
func (s *Set) verify(ctx context.Context, p Package) error {
	f, err := s.Open(p)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, p.Size+1))
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	if n != p.Size || hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		return fault.New(fault.ErrUnavailable, "%s is another file than the mirror's signed list says", p.File)
	}
	return nil
}

// Close removes what was fetched.
func (s *Set) Close() error {
	if s.work == "" {
		return nil
	}
	return os.RemoveAll(s.work)
}
