package pypi

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// Written once; regexps are constant.
var (
	sha256Hex = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
	// pythonRange bounds what of a requires-python is passed on: a publisher's
	// text that only clients read.
	pythonRange = regexp.MustCompile(`^[0-9A-Za-z.,<>=!~*() |+-]{0,120}$`)
)

// listedFile is one file of a page before it is checked.
type listedFile struct {
	name     string
	link     string
	sha256   string // as the page wrote it
	sidecar  string // sha256 as the page wrote it
	requires string
	file     ecosystem.File // size, time, yanked
}

// listing collects the files of one page.
type listing struct {
	index *ecosystem.Index
	base  *url.URL
	seen  map[string]string // file name to digest
}

func newListing(project, pageURL string) (*listing, error) {
	base, err := url.Parse(pageURL)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the page's own URL can't be read")
	}
	return &listing{
		index: &ecosystem.Index{Project: project},
		base:  base,
		seen:  map[string]string{},
	}, nil
}

// addEntry checks one entry and lists it or leaves it out. It fails only for what
// makes the page as a whole unbelievable.
func (l *listing) addEntry(e listedFile) error {
	if len(l.index.Files)+len(l.index.LeftOut) >= ecosystem.MaxFiles {
		return fault.Invalid("the index lists more than %d files", ecosystem.MaxFiles)
	}
	d, err := pkgref.ParsePythonFile(e.name, l.index.Project)
	if err != nil {
		l.leaveOut(e.name, "its name is not that of a distribution file of this project")
		return nil //nolint:nilerr // a file that is none is no fault of the page
	}
	if alone, err := pkgref.ParsePythonFile(e.name, ""); err != nil || alone != d {
		l.leaveOut(e.name, "its name can be read in two ways")
		return nil //nolint:nilerr // a file that is none is no fault of the page
	}
	f := e.file
	location, path, _, reason := ecosystem.ResolveFile(l.base, e.link)
	switch {
	case reason != "":
		l.leaveOut(e.name, reason)
		return nil
	case !strings.HasSuffix(path, "/"+e.name):
		l.leaveOut(e.name, "its URL ends in another name")
		return nil
	case !sha256Hex.MatchString(e.sha256):
		l.leaveOut(e.name, "the index gives no sha256 for it")
		return nil
	}
	f.Name, f.Version, f.Kind = e.name, d.Version, artifactKind(d)
	f.URL, f.Path = location, path
	f.Digest = "sha256:" + strings.ToLower(e.sha256)
	if sha256Hex.MatchString(e.sidecar) {
		f.Sidecar = "sha256:" + strings.ToLower(e.sidecar)
	}
	if pythonRange.MatchString(e.requires) {
		f.Requires = e.requires
	}
	if digest, again := l.seen[f.Name]; again {
		if digest != f.Digest {
			return fault.Invalid("the index lists %s twice, with two digests", f.Name)
		}
		return nil
	}
	l.seen[f.Name] = f.Digest
	l.index.Files = append(l.index.Files, f)
	return nil
}

func (l *listing) leaveOut(name, reason string) {
	l.index.LeftOut = append(l.index.LeftOut, ecosystem.LeftOut{Name: name, Reason: reason})
}
