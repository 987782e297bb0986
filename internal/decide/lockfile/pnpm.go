package lockfile

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// readPnpm reads pnpm-lock.yaml of versions 6 and 9. Directories are the
// project's own and are left out. Before the project's document there may be one of the
// tools that pnpm is run by, which it gets from the registry as well.
func readPnpm(b *builder, data []byte) error {
	documents, err := b.readYAML(data, 2)
	if err != nil {
		return err
	}
	if len(documents) > 1 && !isOfTools(documents[0]) {
		return b.wrongLine(documents[1].line, "the file has more than one YAML document, and the first is not that of the tools by which pnpm is run")
	}
	for _, root := range documents {
		if err := b.pnpmDocument(root); err != nil {
			return err
		}
	}
	return nil
}

// isOfTools tells whether a document names what pnpm itself is run by, and nothing that a project depends on.
func isOfTools(root *value) bool {
	importers := root.getItem("importers")
	if importers == nil || importers.kind != mapping || len(importers.values) == 0 {
		return false
	}
	for _, project := range importers.values {
		for _, key := range project.keys {
			if key != "packageManagerDependencies" && key != "configDependencies" {
				return false
			}
		}
	}
	return true
}

func (b *builder) pnpmDocument(root *value) error {
	if err := b.object(root, "the document"); err != nil {
		return err
	}
	version, err := b.scalar(root, "lockfileVersion")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(version, "6.") && !strings.HasPrefix(version, "9.") {
		return b.wrongLine(root.line, "the file has lockfileVersion %q; 6 and 9 are read: write it again with pnpm 8 or later", text.Shorten(version, maxQuoted))
	}
	packages, err := b.childOf(root, "packages", mapping)
	if err != nil {
		return err
	}
	if packages == nil {
		return b.pnpmProjects(root)
	}
	for i, key := range packages.keys {
		entry := packages.values[i]
		if err := b.object(entry, "a package"); err != nil {
			return err
		}
		if err := b.pnpmPackage(key, entry); err != nil {
			return err
		}
	}
	if err := b.pnpmProjects(root); err != nil {
		return err
	}
	return b.pnpmSnapshots(root)
}

// pnpmProjects refuses the names by which projects have a directory, or a release from elsewhere that has another name itself.
// Version 6 has those of a single project at its root.
func (b *builder) pnpmProjects(root *value) error {
	projects := []*value{root}
	if importers := root.getItem("importers"); importers != nil {
		projects = append(projects, importers.values...)
	}
	for _, project := range projects {
		for _, key := range []string{"dependencies", "devDependencies", "optionalDependencies"} {
			all := project.getItem(key)
			if all == nil {
				continue
			}
			for i, name := range all.keys {
				if err := b.pnpmDependency(name, all.values[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *builder) pnpmDependency(name string, of *value) error {
	version := of.getItem("version")
	if version == nil || strings.HasPrefix(version.text, "runtime:") {
		return nil
	}
	from, _, _ := strings.Cut(version.text, "(")
	switch {
	case strings.HasPrefix(from, "link:"):
		return b.refuseOwn(of.line, name)
	case isRelease(from) || len(b.unpinnables[name]) > 0:
		return nil
	}
	return b.unpinnable(of.line, name, "", "comes from a URL of its own or a file")
}

// isRelease tells whether a project has a dependency from the registry: by a version, or by NAME@VERSION under another name. Version 6
// has a slash before that, and writes a repository without a scheme (code.example/owner/name/COMMIT).
func isRelease(from string) bool {
	if strings.Contains(from, ":") {
		return false
	}
	from = strings.TrimPrefix(from, "/")
	if at := strings.LastIndexByte(from, '@'); at > 0 {
		from = from[at+1:]
	}
	return !strings.Contains(from, "/")
}

// pnpmSnapshots reads what version 9 says of the packages' dependencies: one
// entry for each set of peers that a package was installed with.
func (b *builder) pnpmSnapshots(root *value) error {
	snapshots, err := b.childOf(root, "snapshots", mapping)
	if err != nil || snapshots == nil {
		return err
	}
	for i, key := range snapshots.keys {
		entry := snapshots.values[i]
		bare, _, _ := strings.Cut(key, "(")
		cut := strings.LastIndexByte(bare, '@')
		if cut <= 0 || entry.kind != mapping {
			continue
		}
		if ref, err := pkgref.New(b.ecosystem, bare[:cut], bare[cut+1:]); err == nil {
			b.requirePins(ref, entry)
		}
	}
	return nil
}

// pnpmPackage reads an entry whose key is "name@version", in version 6 with a
// slash before it, and perhaps with peers in parentheses behind it.
func (b *builder) pnpmPackage(key string, entry *value) error {
	resolution, err := b.childOf(entry, "resolution", mapping)
	if err != nil {
		return err
	}
	line := entry.line
	if resolution == nil {
		return b.wrongLine(line, "%q has no resolution", text.Shorten(key, maxQuoted))
	}
	if resolution.getItem("directory") != nil {
		return b.pnpmDirectory(line, key, entry)
	}
	name, version, err := b.pnpmKey(line, key, entry)
	if err != nil {
		return err
	}
	hashed, linked := resolution.getItem("integrity") != nil, resolution.getItem("tarball") != nil
	switch {
	case strings.HasPrefix(version, "runtime:"):
		b.skipEntry(line, name+"@"+version, "is a runtime, which pnpm downloads from elsewhere")
		return nil
	case resolution.getItem("type") != nil || resolution.getItem("repo") != nil || resolution.getItem("commit") != nil:
		return b.unpinnable(line, name, "", "comes from a repository")
	case strings.ContainsAny(version, "/:"):
		return b.unpinnable(line, name, "", "comes from a URL of its own or a file")
	case !hashed && linked && !b.resolved: // a resolver has it of what is made when somebody wants it
		return b.unpinnable(line, name, version, hasNoHash)
	}
	ref, is, err := b.refOf(line, name, version)
	if err != nil || !is {
		return err
	}
	if !hashed {
		return b.pinRelease(line, ref, nil)
	}
	if err := b.npmTarball(resolution, "tarball", ref); err != nil {
		return err
	}
	b.requirePins(ref, entry) // of version 6; version 9 has snapshots
	return b.pinIntegrity(line, ref, entry, resolution)
}

// pnpmDirectory refuses the name of a directory of the project's own. One without a name is told: nobody can say which it has.
func (b *builder) pnpmDirectory(line int, key string, entry *value) error {
	if name, _, err := b.pnpmKey(line, key, entry); err == nil {
		return b.refuseOwn(line, name)
	}
	b.skipEntry(line, key, "is a directory without a name here")
	return nil
}

// pnpmKey reads the key of an entry: its name and version, behind whose first @ a URL may stand. A
// package from a repository has the name beside it in version 6.
func (b *builder) pnpmKey(line int, key string, entry *value) (name, version string, err error) {
	own, _, err := b.string(entry, "name")
	if err != nil {
		return "", "", err
	}
	bare, _, _ := strings.Cut(strings.TrimPrefix(key, "/"), "(")
	if own != "" {
		return own, strings.TrimPrefix(bare, own+"@"), nil
	}
	scoped := strings.TrimPrefix(bare, "@")
	name, version, ok := strings.Cut(scoped, "@")
	if !ok || name == "" {
		return "", "", b.wrongLine(line, "%q is not name@version", text.Shorten(key, maxQuoted))
	}
	return bare[:len(bare)-len(scoped)] + name, version, nil
}
