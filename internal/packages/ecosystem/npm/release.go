package npm

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// versionManifest is one manifest while it is read. Its buffers are used again for the
// next.
type versionManifest struct {
	claims
	version     string // its key on the page
	full, short []byte // the manifest in the two forms, objects that are not closed
	file        ecosystem.File
	dist        bool   // there was one
	reason      string // why nobody may have it, "" so far
	integrity   string
	shasum      string
}

// maxManifest bounds one manifest in full; the largest real ones have a few
// hundred kilobytes.
const maxManifest = 2 * maxValue

func (r *versionManifest) beginVersion(version string) {
	*r = versionManifest{
		version: version, full: append(r.full[:0], '{'), short: append(r.short[:0], '{'),
		file: ecosystem.File{Version: version, Kind: policy.KindPackage},
	}
}

// noteRefusal notes the first reason.
func (r *versionManifest) noteRefusal(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
}

// readRelease reads the manifest under the key version and lists it or leaves
// it out.
func (p *packument) readRelease(version string) error {
	if len(p.index.Files)+len(p.index.LeftOut) >= ecosystem.MaxFiles {
		return fault.Invalid("the packument has more than %d releases", ecosystem.MaxFiles)
	}
	if _, err := pkgref.CanonicalVersion(pkgref.Node, version); err != nil {
		p.leaveOut(version, "", "its version is not a semantic version")
		return p.skipValue()
	}
	if p.dec.PeekKind() != '{' {
		p.leaveOut(version, "", "its manifest is no object")
		return p.skipValue()
	}
	r := &p.release
	r.beginVersion(version)
	if err := p.object("", p.manifestMember); err != nil {
		return err
	}
	r.judgeManifest(p.index.Project)
	if r.reason != "" {
		p.leaveOut(version, r.file.Path, r.reason)
		return nil
	}
	if r.runsAtInstall() {
		r.file.Scripts = true
		r.short = appendMember(r.short, "hasInstallScript", jsontext.Value("true"))
	}
	return p.listRelease(r)
}

// judgeManifest says what of the whole manifest is wrong.
func (r *versionManifest) judgeManifest(project string) {
	switch {
	case r.name != project:
		r.noteRefusal("its manifest has another name")
	case r.claims.version != r.version:
		r.noteRefusal("its manifest has another version")
	case !r.dist:
		r.noteRefusal("the registry gives no tarball for it")
	case r.wrong != "":
		r.noteRefusal("its " + r.wrong + " has a form that clients read in different ways")
	}
	if reason := r.unservable(); reason != "" {
		r.noteRefusal(reason)
	}
	digest, reason := strongest(r.integrity, r.shasum)
	if reason != "" {
		r.noteRefusal(reason)
	}
	r.file.Digest = digest
}

// listRelease writes the manifest's rows and lists its file.
func (p *packument) listRelease(r *versionManifest) error {
	var err error
	if r.file.Manifest, err = p.rows.Append(append(r.full, '}')); err != nil {
		return err
	}
	short, err := p.rows.Append(append(r.short, '}'))
	if err != nil {
		return err
	}
	r.file.Rows = []ecosystem.Extent{short}
	for _, part := range r.ownPreReleases() {
		p.parts[part] = append(p.parts[part], r.version)
	}
	p.index.Files = append(p.index.Files, r.file)
	return nil
}

// manifestMember reads one member of the manifest.
func (p *packument) manifestMember(name string) error {
	r := &p.release
	if name == "dist" && p.dec.PeekKind() == '{' {
		return p.readDist()
	}
	v, err := p.nextValue()
	if err != nil {
		return err
	}
	if claimed(name) {
		r.readMember(name, v)
	}
	if !passedOn(name) {
		return nil
	}
	if len(r.full)+len(v) > maxManifest {
		return fault.Invalid("the packument has a manifest of more than %d MiB", maxManifest>>20)
	}
	from := len(r.full)
	r.full = appendMember(r.full, name, v)
	if abbreviated(name) {
		r.short = appendPiece(r.short, r.full[from:])
	}
	return nil
}

// appendPiece appends a member that was written for another object.
func appendPiece(dst, member []byte) []byte {
	if member[0] == ',' {
		member = member[1:]
	}
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	return append(dst, member...)
}

// passedOn tells whether a manifest's member goes on to clients. Fields that begin with an
// underscore are the registry's notes to itself, except the few that clients read (pnpm reads who
// published); the readme is long, and dist is written anew.
func passedOn(name string) bool {
	switch name {
	case "_id", "_hasShrinkwrap", "_npmUser":
		return true
	case "readme", "dist":
		return false
	}
	return !strings.HasPrefix(name, "_")
}

// abbreviated tells whether a member is part of the abbreviated form: what
// registries document for it, without devDependencies, which nobody installs
// and which are most of it. hasInstallScript and dist are part of it, too, and
// are written apart.
func abbreviated(name string) bool {
	switch name {
	case "name", "version", "deprecated", "dependencies", "optionalDependencies", "bundleDependencies",
		"bundledDependencies", "peerDependencies", "peerDependenciesMeta", "acceptDependencies", "bin", "directories", "engines",
		"os", "cpu", "libc", "funding", "_hasShrinkwrap":
		return true
	}
	return false
}

// readDist reads where the tarball is and what its digests are, and writes the
// member anew, with the tarball where clients of the gateway find it.
func (p *packument) readDist() error {
	r := &p.release
	from := len(r.full)
	r.full = append(appendName(r.full, "dist"), '{')
	err := p.object("", func(name string) error {
		v, err := p.nextValue()
		if err != nil {
			return err
		}
		switch name {
		case "tarball":
			link, _ := stringOf(v)
			r.full = appendText(appendName(r.full, name), p.resolveLink(r, link))
			return nil
		case "integrity":
			r.integrity = p.digestText(r, v)
		case "shasum":
			r.shasum = p.digestText(r, v)
		case "size":
			if n, err := strconv.ParseInt(string(v), 10, 64); err == nil && n > 0 {
				r.file.Size = n
			}
		case "npm-signature": // of a scheme that was given up
			return nil
		}
		r.full = appendMember(r.full, name, v)
		return nil
	})
	r.full = append(r.full, '}')
	if len(r.full) > maxManifest {
		return fault.Invalid("the packument has a manifest of more than %d MiB", maxManifest>>20)
	}
	r.short = appendPiece(r.short, r.full[from:])
	return err
}

func (p *packument) digestText(r *versionManifest, v jsontext.Value) string {
	s, ok := stringOf(v)
	if !ok && v.Kind() != 'n' {
		r.noteRefusal("the registry gives its digest as something else than a text")
	}
	return s
}

// placeOn is the path on a host below which the registry of the page is, "" if it is the host's root or the page is on another host.
func (p *packument) placeOn(host string) string {
	page, err := ecosystem.PathOf(openScopes(p.base.EscapedPath()))
	if err != nil || host != p.base.Host {
		return ""
	}
	place, below := strings.CutSuffix(page, "/"+p.index.Project)
	if !below {
		return ""
	}
	return place
}

// resolveLink takes a tarball's link apart and gives the URL for clients. Some registries have tarballs at paths that
// name no release. Clients are given one that does; the tarball itself says whose it is (Inspect).
func (p *packument) resolveLink(r *versionManifest, link string) string {
	location, path, _, reason := ecosystem.ResolveFile(p.base, openScopes(link))
	if reason != "" {
		r.noteRefusal(reason)
		return ""
	}
	t, dashed, err := tarballAt(strings.Split(strings.TrimPrefix(path, "/"), "/"))
	named := dashed && err == nil
	switch {
	case link == "":
		r.noteRefusal("the registry gives no URL of its tarball")
		return ""
	case !dashed, !named && strings.Contains(path, "/"+p.index.Project+"/-/"):
		u, err := url.Parse(location)
		if err != nil {
			r.noteRefusal("its URL can't be read")
			return ""
		}
		t.file = bareName(p.index.Project) + "-" + r.version + tarballSuffix
		path = p.placeOn(u.Host) + "/" + p.index.Project + "/-/" + t.file
		r.file.Shown = "https://" + u.Hostname() + path
	case !named || t.ran || t.project != p.index.Project || t.version != r.version:
		r.noteRefusal("its tarball's path is that of another release")
		return ""
	}
	r.dist = true
	r.file.Name, r.file.URL, r.file.Path = t.file, location, path
	return r.file.ClientURL()
}
