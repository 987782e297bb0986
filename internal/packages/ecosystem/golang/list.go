package golang

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/redact"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// formList is the one form of a page.
const formList ecosystem.Form = "list"

// The media types of lists. A proxy may be a plain file server, which gives a
// file without an ending the second.
const (
	typeText  = "text/plain; charset=utf-8"
	mediaText = "text/plain"
	mediaData = "application/octet-stream"
)

// listLine is a version, and in some proxies' lists a time.
var listLine = regexp.MustCompile(`^([0-9A-Za-z][0-9A-Za-z.+-]*)([ \t]+[0-9TZ:.+-]+)?[ \t\r]*$`)

// maxLine bounds a line of a list.
const maxLine = 1 << 10

// IndexAsk asks for a module's list.
func (Protocol) IndexAsk(base, project string) ecosystem.Ask {
	return ecosystem.Ask{URL: base + escapePath(project) + "/" + folder + "/list", Accept: mediaText + ", */*;q=0.1", Types: []string{mediaText, mediaData}}
}

// Form has no choice.
func (Protocol) Form(string) ecosystem.Form { return formList }

// ContentType is plain text.
func (Protocol) ContentType(ecosystem.Form) string { return typeText }

// ParseIndex reads a list. It gives neither digests nor times: those are the
// database's, and a time in a list is the publisher's. An empty list is that of
// a module without tagged versions. Pages are rendered from the index alone.
func (Protocol) ParseIndex(project string, page ecosystem.Page, _ ecosystem.Rows) (*ecosystem.Index, error) {
	media, _, _ := strings.Cut(page.ContentType, ";")
	if media = strings.ToLower(strings.TrimSpace(media)); media != mediaText && media != mediaData {
		return nil, fault.Invalid("the proxy answered with the content type %q; a list of versions is plain text", redact.Cut(page.ContentType, maxQuoted))
	}
	base, ok := strings.CutSuffix(page.URL, escapePath(project)+"/"+folder+"/list")
	if !ok || !strings.HasSuffix(base, "/") {
		return nil, fault.Invalid("the proxy sent the list of versions from another place than the module's")
	}
	from, err := url.Parse(base)
	if err != nil {
		return nil, fault.Wrap(fault.ErrInvalid, err, "the page's own URL can't be read")
	}
	l := list{index: &ecosystem.Index{Project: project}, base: from, seen: map[string]bool{}}
	if err := l.readVersions(page.Body); err != nil {
		return nil, err
	}
	slices.SortFunc(l.index.Files, func(a, b ecosystem.File) int { return semver.Compare(a.Version, b.Version) })
	return l.index, nil
}

// list collects the versions of one module.
type list struct {
	index *ecosystem.Index
	base  *url.URL
	seen  map[string]bool
}

func (l *list) readVersions(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for lines.Scan() {
		line := lines.Text()
		if strings.Trim(line, " \t\r") == "" {
			continue
		}
		m := listLine.FindStringSubmatch(line)
		if m == nil {
			return fault.Invalid("the proxy's list has a line that is no version: not a list of versions")
		}
		if err := l.addVersion(m[1]); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fault.Invalid("the proxy's list has a line of more than %d bytes: not a list of versions", maxLine)
	}
	return lines.Err()
}

func (l *list) addVersion(version string) error {
	if len(l.index.Files)+len(l.index.LeftOut) >= ecosystem.MaxFiles {
		return fault.Invalid("the proxy lists more than %d versions", ecosystem.MaxFiles)
	}
	if l.seen[version] {
		return nil
	}
	l.seen[version] = true
	f, err := addressed(l.base, l.index.Project, version)
	if err != nil {
		l.index.LeftOut = append(l.index.LeftOut, ecosystem.LeftOut{Name: redact.Cut(version, maxQuoted) + extZip, Reason: "its version is not one that the module can have"})
		return nil //nolint:nilerr // a version that is none is no fault of the list
	}
	l.index.Files = append(l.index.Files, f)
	return nil
}

// addressed is the zip of a release, by its address below a base.
func addressed(base *url.URL, project, version string) (ecosystem.File, error) {
	if !isRelease(project, version) {
		return ecosystem.File{}, fault.Invalid("%q is not a version that %s can have", redact.Cut(version, maxQuoted), redact.Cut(project, maxQuoted))
	}
	location, path, _, reason := ecosystem.ResolveFile(base, escapePath(project)+"/"+folder+"/"+escapeVersion(version)+extZip)
	if reason != "" {
		return ecosystem.File{}, fault.Invalid("the zip of %s %s can't be asked for: %s", redact.Cut(project, maxQuoted), redact.Cut(version, maxQuoted), reason)
	}
	return ecosystem.File{Name: version + extZip, Version: version, Kind: policy.KindPackage, URL: location, Path: path}, nil
}

// Addressed is the zip that a route names: proxies have the zips of commits that
// no list has.
func (Protocol) Addressed(base string, r ecosystem.Route) (ecosystem.File, error) {
	from, err := url.Parse(base)
	if err != nil {
		return ecosystem.File{}, fault.Wrap(fault.ErrInvalid, err, "the upstream's URL can't be read")
	}
	return addressed(from, r.Project, r.Version)
}

// Render lists the allowed versions; where none is, all.
func (Protocol) Render(w io.Writer, ix *ecosystem.Index, _ io.ReaderAt, view ecosystem.View) error {
	if len(view.Verdicts) != len(ix.Files) {
		return fault.Invalid("a page of %d files can't be written with %d verdicts", len(ix.Files), len(view.Verdicts))
	}
	if view.Form != formList || view.Release != "" {
		return fault.Invalid("a list of versions has no other form and no part")
	}
	some := slices.ContainsFunc(view.Verdicts, func(v ecosystem.Verdict) bool { return v.Allowed })
	var b bytes.Buffer
	for i, f := range ix.Files {
		if view.Verdicts[i].Allowed || !some {
			b.WriteString(f.Version)
			b.WriteByte('\n')
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
