package lockfile

import (
	"net/url"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// readPackageLock reads package-lock.json and npm-shrinkwrap.json of versions 2
// and 3: "packages", by where each one is installed. Workspaces and links are
// the project's own, and what is bundled comes in its parent's file; both are
// left out.
func readPackageLock(b *builder, data []byte) error {
	root, err := b.readJSON(data)
	if err != nil {
		return err
	}
	if err := b.object(root, "the document"); err != nil {
		return err
	}
	version, err := b.scalar(root, "lockfileVersion")
	if err != nil {
		return err
	}
	if version != "2" && version != "3" {
		return b.wrongLine(root.line, "the file has lockfileVersion %q; 2 and 3 are read: write it again with npm 7 or later", text.Shorten(version, maxQuoted))
	}
	packages, err := b.childOf(root, "packages", mapping)
	if err != nil {
		return err
	}
	if packages == nil {
		return b.wrongLine(root.line, "the file has no packages")
	}
	for _, entry := range packages.values {
		if err := b.object(entry, "a package"); err != nil {
			return err
		}
	}
	elsewhere := askedElsewhere(packages)
	for i, place := range packages.keys {
		if err := b.npmPackage(place, packages, packages.values[i], elsewhere); err != nil {
			return err
		}
	}
	return nil
}

// askedElsewhere are the names that some package or the project asks for by a repository, a file or a URL, and not by a range.
func askedElsewhere(packages *value) map[string]bool {
	names := map[string]bool{}
	for _, entry := range packages.values {
		for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"} {
			wanted := entry.getItem(key)
			if wanted == nil || wanted.kind != mapping {
				continue
			}
			for i, name := range wanted.keys {
				if spec := wanted.values[i].text; strings.ContainsAny(spec, "/:") && !strings.HasPrefix(spec, "npm:") {
					names[name] = true
				}
			}
		}
	}
	return names
}

// installedAs is the name under which a package is installed, "" if the place is
// the project's own.
func installedAs(place string) string {
	const folder = "node_modules/"
	at := strings.LastIndex(place, folder)
	if at < 0 || (at > 0 && place[at-1] != '/') {
		return ""
	}
	return place[at+len(folder):]
}

// isBundled tells whether a package around a place says that it brings packages in its own file. npm goes by that, and not by what the
// entry at the place says of itself alone.
func isBundled(place string, packages *value) bool {
	for {
		at := strings.LastIndex(place, "/node_modules/")
		if at < 0 {
			return false
		}
		place = place[:at]
		around := packages.getItem(place)
		if around == nil {
			continue
		}
		for _, key := range []string{"bundleDependencies", "bundledDependencies"} {
			if brings := around.getItem(key); brings != nil && (len(brings.values) > 0 || brings.text == "true") {
				return true
			}
		}
	}
}

func (b *builder) npmPackage(place string, packages, entry *value, elsewhere map[string]bool) error {
	name := installedAs(place)
	installed, asked := name, elsewhere[name]
	switch {
	case name == "" || entry.isTrue("inBundle") && entry.getItem("integrity") == nil && isBundled(place, packages):
		return nil
	case entry.isTrue("link"):
		return b.refuseOwn(entry.line, name)
	}
	own, _, err := b.string(entry, "name") // of an alias
	if err != nil {
		return err
	}
	if own != "" {
		name = own
	}
	version, line, err := b.string(entry, "version")
	if err != nil {
		return err
	}
	if line == 0 {
		line = entry.line
	}
	from, err := b.npmSource(entry, asked)
	switch {
	case err != nil:
		return err
	case from != "":
		return b.npmElsewhere(line, installed, name, version, from)
	case version == "" && entry.getItem("resolved") != nil:
		return b.unpinnable(line, name, "", "has no version")
	case version == "" && entry.isTrue("optional"):
		b.skipEntry(line, name, "is optional and for another system")
		return nil
	}
	ref, is, err := b.npmRef(line, installed, name, version)
	if err != nil || !is {
		return err
	}
	if err := b.npmTarball(entry, "resolved", ref); err != nil {
		return err
	}
	b.requireRanges(ref, entry, "dependencies", "optionalDependencies", "peerDependencies")
	return b.pinIntegrity(entry.line, ref, entry, entry)
}

// npmRef is ref, and refuses the name too that the project asks by for what is none: a registry may have something else under it.
func (b *builder) npmRef(line int, installed, name, version string) (ref pkgref.Ref, is bool, err error) {
	ref, is, err = b.refOf(line, name, version)
	if err == nil && !is && installed != name {
		err = b.unpinnable(line, installed, "", "stands for a package that can't be read")
	}
	return ref, is, err
}

// npmElsewhere refuses a name, and the other one by which the project may ask for it: a registry may have something else under either.
func (b *builder) npmElsewhere(line int, installed, name, version, from string) error {
	if installed != name {
		if err := b.unpinnable(line, installed, "", from); err != nil {
			return err
		}
	}
	return b.unpinnable(line, name, version, from)
}

// pinIntegrity adds a release by the integrity that is in its entry, or in a part of that; one that can be forged pins nothing.
func (b *builder) pinIntegrity(line int, ref pkgref.Ref, entry, in *value) error {
	b.noteScripts(ref, entry)
	sri, at, err := b.string(in, "integrity")
	if err != nil {
		return err
	}
	if at == 0 {
		return b.pinRelease(line, ref, nil)
	}
	digests, lacks := integrityDigests(sri)
	if lacks != "" {
		return b.unpinnable(line, ref.Name, ref.Version, lacks)
	}
	return b.pinRelease(line, ref, digests)
}

// npmSource is why what does not come from a registry pins nothing; "": it does. A registry may have its tarballs wherever it likes, so a
// URL tells that only if somebody asked for it. Then no release of the registry's is meant.
func (b *builder) npmSource(entry *value, asked bool) (reason string, err error) {
	resolved, line, err := b.string(entry, "resolved")
	if err != nil || line == 0 {
		return "", err
	}
	path, is := webPath(resolved)
	switch {
	case !is:
		return "comes from a repository or a file", nil
	case asked && !strings.Contains(path, "/-/"):
		return "comes from a URL of its own", nil
	}
	return "", nil
}

// webPath is the path of a URL of https or http.
func webPath(location string) (path string, ok bool) {
	u, err := url.Parse(location)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return "", false
	}
	return u.Path, true
}

// npmTarball checks a URL that a registry's usual ones look like: it must be that of the release's own tarball. Otherwise
// the lockfile gives a package another one's file under a hash that is right.
func (b *builder) npmTarball(entry *value, key string, ref pkgref.Ref) error {
	location, line, err := b.string(entry, key)
	if err != nil || line == 0 {
		return err
	}
	if u, err := url.Parse(location); err == nil && !strings.Contains(u.Path, "/-/") {
		return nil // a registry's with names of its own, whose file is held to the hash
	}
	if !isTarballOf(location, ref) {
		return b.wrongLine(line, "%q is not the tarball of %s %s", text.Shorten(location, maxQuoted), ref.Name, ref.Version)
	}
	return nil
}

func isTarballOf(location string, ref pkgref.Ref) bool {
	u, err := url.Parse(location)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return false
	}
	project, file, ok := strings.Cut(u.Path, "/-/")
	if !ok || strings.Contains(file, "/-/") || !strings.HasSuffix(project, "/"+ref.Name) {
		return false
	}
	// An unscoped name must not be the end of a scoped one.
	if before := strings.TrimSuffix(project, "/"+ref.Name); !strings.HasPrefix(ref.Name, "@") && strings.HasPrefix(path.Base(before), "@") {
		return false
	}
	_, bare, scoped := strings.Cut(ref.Name, "/")
	if !scoped {
		bare = ref.Name
	}
	version, ok := strings.CutPrefix(strings.TrimSuffix(path.Base(file), ".tgz"), bare+"-")
	return ok && strings.HasSuffix(file, ".tgz") && pkgref.SameVersion(ref.Ecosystem, version, ref.Version)
}
