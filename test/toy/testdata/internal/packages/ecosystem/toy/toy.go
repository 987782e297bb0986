// Package toy is a registry's protocol, as small as one can be: BASE/NAME is a page, a line
// for each release with its digest, and BASE/NAME/VERSION.toy is a release's one file.
package toy

import (
	"bufio"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const (
	mediaType = "text/x-toy"
	ending    = ".toy"
	lastLine  = "end"
)

// Protocol implements ecosystem.Protocol.
type Protocol struct{}

var _ ecosystem.Protocol = Protocol{}

// New returns the protocol.
func New() Protocol { return Protocol{} }

// Ecosystem is pkgref.Toy.
func (Protocol) Ecosystem() pkgref.Ecosystem { return pkgref.Toy }

// Route implements ecosystem.Protocol.
func (Protocol) Route(place ecosystem.Place, r ecosystem.Request) (ecosystem.Route, error) {
	segments, slash, err := ecosystem.Segments(r.Path)
	if err != nil {
		return ecosystem.Route{}, err
	}
	if slash || r.Query != "" || len(segments) == 0 {
		return ecosystem.Route{}, fault.New(fault.ErrNotFound, "no such page")
	}
	last := segments[len(segments)-1]
	version, isFile := strings.CutSuffix(last, ending)
	switch {
	case isFile && place.Files && len(segments) > 1:
		ref, err := pkgref.New(pkgref.Toy, segments[len(segments)-2], version)
		if err != nil || ref.Version == "" {
			return ecosystem.Route{}, fault.Invalid("the path names no release")
		}
		path, err := ecosystem.PathOf(r.Path)
		return ecosystem.Route{Kind: ecosystem.RouteFile, Project: ref.Name, Version: ref.Version, File: last, Path: path}, err
	case place.Base != "" && r.Path == place.Base+last:
		if !pkgref.IsCanonicalName(pkgref.Toy, last) {
			return ecosystem.Route{}, fault.Invalid("the path names no package")
		}
		return ecosystem.Route{Kind: ecosystem.RouteIndex, Project: last}, nil
	}
	return ecosystem.Route{}, fault.New(fault.ErrNotFound, "no such page")
}

// IndexAsk implements ecosystem.Protocol.
func (Protocol) IndexAsk(base, project string) ecosystem.Ask {
	return ecosystem.Ask{URL: base + project, Accept: mediaType, Types: []string{mediaType}}
}

// ParseIndex reads a page: its name, the releases, and a last line, so that none is cut.
func (Protocol) ParseIndex(project string, page ecosystem.Page, _ ecosystem.Rows) (*ecosystem.Index, error) {
	if page.ContentType != mediaType {
		return nil, fault.Invalid("the page is no %s", mediaType)
	}
	base, err := url.Parse(page.URL)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the page's own URL can't be read")
	}
	ix, ended := &ecosystem.Index{Project: project}, false
	lines := bufio.NewScanner(page.Body)
	if !lines.Scan() || lines.Text() != "toy "+project {
		return nil, fault.Invalid("the page is not that of %s", project)
	}
	for lines.Scan() {
		version, digest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case ended:
			return nil, fault.Invalid("something follows the page's end")
		case version == lastLine && digest == "":
			ended = true
			continue
		}
		f, err := release(base, project, version, digest)
		if err != nil {
			return nil, err
		}
		ix.Files = append(ix.Files, f)
	}
	if lines.Err() != nil || !ended {
		return nil, fault.Invalid("the page was cut")
	}
	return ix, nil
}

func release(page *url.URL, project, version, digest string) (ecosystem.File, error) {
	ref, err := pkgref.New(pkgref.Toy, project, version)
	if err != nil || ref.Version == "" || !ecosystem.Strong(digest) {
		return ecosystem.File{}, fault.Invalid("the page has a line that is no release")
	}
	location, path, _, reason := ecosystem.ResolveFile(page, project+"/"+version+ending)
	if reason != "" {
		return ecosystem.File{}, fault.Invalid("a release can't be asked for: %s", reason)
	}
	return ecosystem.File{Name: version + ending, Version: ref.Version, Kind: policy.KindPackage, Digest: digest, URL: location, Path: path}, nil
}

// Form implements ecosystem.Protocol; there is one.
func (Protocol) Form(string) ecosystem.Form { return "toy" }

// ContentType implements ecosystem.Protocol.
func (Protocol) ContentType(ecosystem.Form) string { return mediaType }

// Render lists the allowed releases.
func (Protocol) Render(w io.Writer, ix *ecosystem.Index, _ io.ReaderAt, view ecosystem.View) error {
	if len(view.Verdicts) != len(ix.Files) {
		return fault.Invalid("a page of %d files can't be written with %d verdicts", len(ix.Files), len(view.Verdicts))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "toy %s\n", ix.Project)
	for i, f := range ix.Files {
		if view.Verdicts[i].Allowed {
			fmt.Fprintf(&b, "%s %s\n", f.Version, f.Digest)
		}
	}
	b.WriteString(lastLine + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// Refuse implements ecosystem.Protocol.
func (Protocol) Refuse(r ecosystem.Refusal) ecosystem.Answer {
	switch r.Cause {
	case ecosystem.ByPolicy:
		return ecosystem.Problem(403, r)
	case ecosystem.Malformed:
		return ecosystem.Problem(400, r)
	case ecosystem.Missing, ecosystem.NoSuchRoute:
		return ecosystem.Problem(404, r)
	case ecosystem.Unverified, ecosystem.Unreachable, ecosystem.Declined, ecosystem.TooMuch:
	}
	return ecosystem.Problem(424, r)
}
