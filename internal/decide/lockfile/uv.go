package lockfile

import (
	"net/url"
	"path"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// readUV reads uv.lock. Packages of the project itself (virtual, editable,
// directory) are not fetched and are left out.
func readUV(b *builder, data []byte) error {
	root, err := b.readTOML(data)
	if err != nil {
		return err
	}
	version, err := b.scalar(root, "version")
	if err != nil {
		return err
	}
	if version != "1" {
		return b.wrongLine(1, "uv.lock has version %q; version 1 is read", text.Shorten(version, maxQuoted))
	}
	packages, err := b.childOf(root, "package", list)
	if err != nil || packages == nil {
		return err
	}
	for _, p := range packages.values {
		if err := b.object(p, "a package"); err != nil {
			return err
		}
		if err := b.uvPackage(p); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) uvPackage(p *value) error {
	name, _, err := b.string(p, "name")
	if err != nil {
		return err
	}
	version, _, err := b.string(p, "version")
	if err != nil {
		return err
	}
	source, err := b.childOf(p, "source", mapping)
	if err != nil {
		return err
	}
	if source == nil || len(source.keys) == 0 {
		return b.wrongLine(p.line, "the package %q has no source", text.Shorten(name, maxQuoted))
	}
	for _, local := range []string{"virtual", "editable", "directory"} {
		if source.getItem(local) != nil {
			return b.refuseOwn(p.line, name)
		}
	}
	if source.getItem("registry") == nil {
		return b.unpinnable(p.line, name, version, "comes from a "+uvSource(source.keys[0])+", not from an index")
	}
	ref, is, err := b.refOf(p.line, name, version)
	if err != nil || !is {
		return err
	}
	b.requireNames(ref, p.getItem("dependencies"))
	if extras := p.getItem("optional-dependencies"); extras != nil && extras.kind == mapping {
		for _, names := range extras.values {
			b.requireNames(ref, names)
		}
	}
	digests, lacks, err := b.uvFiles(p, ref)
	if err != nil {
		return err
	}
	return b.pinFiles(p.line, ref, digests, lacks)
}

// pinFiles adds a release by the digests of its files; lacks is what is wrong with the hash of one of them: then it pins nothing.
func (b *builder) pinFiles(line int, ref pkgref.Ref, digests []string, lacks string) error {
	if lacks != "" {
		return b.unpinnable(line, ref.Name, ref.Version, "has a file that "+lacks)
	}
	return b.pinRelease(line, ref, digests)
}

// uvSource is a kind of source in words.
func uvSource(kind string) string {
	switch kind {
	case "git":
		return "repository"
	case "url":
		return "URL"
	case "path":
		return "file"
	}
	return "source that is not known here"
}

// uvFiles are the digests of a release's files; lacks is what is wrong with the hash of one of them.
func (b *builder) uvFiles(p *value, ref pkgref.Ref) (digests []string, lacks string, err error) {
	sdist, err := b.childOf(p, "sdist", mapping)
	if err != nil {
		return nil, "", err
	}
	wheels, err := b.childOf(p, "wheels", list)
	if err != nil {
		return nil, "", err
	}
	var files []*value
	if sdist != nil {
		files = append(files, sdist)
	}
	if wheels != nil {
		files = append(files, wheels.values...)
	}
	for _, f := range files {
		if err := b.object(f, "a file"); err != nil {
			return nil, "", err
		}
		if err := b.fileName(f, ref, "url", "path", "filename"); err != nil {
			return nil, "", err
		}
		hash, _, err := b.string(f, "hash")
		if err != nil {
			return nil, "", err
		}
		if hash == "" {
			return nil, hasNoHash, nil
		}
		digest, lacks := colonDigest(hash)
		if lacks != "" {
			return nil, lacks, nil
		}
		digests = append(digests, digest)
	}
	return digests, "", nil
}

// fileName checks the names that a file has at some of its keys; it must have one.
func (b *builder) fileName(f *value, ref pkgref.Ref, keys ...string) error {
	named := false
	for _, key := range keys {
		location, line, err := b.string(f, key)
		if err != nil {
			return err
		}
		if line == 0 {
			continue
		}
		named = true
		if err := b.pythonFile(line, location, ref); err != nil {
			return err
		}
	}
	if !named {
		return b.wrongLine(f.line, "a file of %s %s has neither a URL nor a name", ref.Name, ref.Version)
	}
	return nil
}

// pythonFile checks that a file's name, or the last part of its URL, is that of
// a file of the release. Otherwise the lockfile gives a package another one's
// file under a hash that is right.
func (b *builder) pythonFile(line int, location string, ref pkgref.Ref) error {
	name := path.Base(location)
	if u, err := url.Parse(location); err == nil {
		name = path.Base(u.Path)
	}
	if !isFileOf(name, ref) {
		return b.wrongLine(line, "%q is not a file of %s %s", text.Shorten(name, maxQuoted), ref.Name, ref.Version)
	}
	return nil
}

func isFileOf(file string, ref pkgref.Ref) bool {
	f, err := pkgref.ParsePythonFile(file, ref.Name)
	return err == nil && pkgref.SameVersion(ref.Ecosystem, f.Version, ref.Version)
}
