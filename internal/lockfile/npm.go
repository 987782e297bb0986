package lockfile

import (
	"net/url"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
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
		return b.wrong(root.line, "the file has lockfileVersion %q; 2 and 3 are read: write it again with npm 7 or later", excerpt.Of(version, maxQuoted))
	}
	packages, err := b.child(root, "packages", mapping)
	if err != nil {
		return err
	}
	if packages == nil {
		return b.wrong(root.line, "the file has no packages")
	}
	for i, place := range packages.keys {
		entry := packages.values[i]
		if err := b.object(entry, "a package"); err != nil {
			return err
		}
		if err := b.npmPackage(place, entry); err != nil {
			return err
		}
	}
	return nil
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

func (b *builder) npmPackage(place string, entry *value) error {
	name := installedAs(place)
	if name == "" || entry.isTrue("link") || entry.isTrue("inBundle") {
		return nil
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
	if err := b.npmSource(entry, name); err != nil {
		return err
	}
	ref, err := b.ref(line, name, version)
	if err != nil {
		return err
	}
	if err := b.npmTarball(entry, "resolved", ref); err != nil {
		return err
	}
	b.requireRanges(ref, entry, "dependencies", "optionalDependencies", "peerDependencies")
	sri, line, err := b.string(entry, "integrity")
	if err != nil {
		return err
	}
	if line == 0 {
		return b.pin(entry.line, ref, nil)
	}
	digests, err := b.integrity(line, ref.Name+" "+ref.Version, sri)
	if err != nil {
		return err
	}
	return b.pin(entry.line, ref, digests)
}

// npmSource refuses what does not come from a registry.
func (b *builder) npmSource(entry *value, name string) error {
	resolved, line, err := b.string(entry, "resolved")
	if err != nil || line == 0 {
		return err
	}
	if u, err := url.Parse(resolved); err != nil || (u.Scheme != "https" && u.Scheme != "http") || !strings.Contains(u.Path, "/-/") {
		return b.wrong(line, "%s comes from a repository, a file or a URL of its own; only releases of a registry can be locked", excerpt.Of(name, maxQuoted))
	}
	return nil
}

// npmTarball checks that a URL is that of the release's own tarball. Otherwise
// the lockfile gives a package another one's file under a hash that is right.
func (b *builder) npmTarball(entry *value, key string, ref pkgref.Ref) error {
	location, line, err := b.string(entry, key)
	if err != nil || line == 0 {
		return err
	}
	if !isTarballOf(location, ref) {
		return b.wrong(line, "%q is not the tarball of %s %s", excerpt.Of(location, maxQuoted), ref.Name, ref.Version)
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
