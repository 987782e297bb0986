package lockfile

import (
	"net/url"
	"path"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
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
		return b.wrong(1, "uv.lock has version %q; version 1 is read", excerpt.Of(version, maxQuoted))
	}
	packages, err := b.child(root, "package", list)
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
	source, err := b.child(p, "source", mapping)
	if err != nil {
		return err
	}
	if source == nil || len(source.keys) == 0 {
		return b.wrong(p.line, "the package %q has no source", excerpt.Of(name, maxQuoted))
	}
	for _, local := range []string{"virtual", "editable", "directory"} {
		if source.get(local) != nil {
			return nil
		}
	}
	if source.get("registry") == nil {
		return b.wrong(source.line, "the package %q comes from a %s; only releases of an index can be locked", excerpt.Of(name, maxQuoted), excerpt.Of(source.keys[0], maxQuoted))
	}
	version, _, err := b.string(p, "version")
	if err != nil {
		return err
	}
	ref, err := b.ref(p.line, name, version)
	if err != nil {
		return err
	}
	b.requireNames(ref, p.get("dependencies"))
	if extras := p.get("optional-dependencies"); extras != nil && extras.kind == mapping {
		for _, names := range extras.values {
			b.requireNames(ref, names)
		}
	}
	digests, err := b.uvFiles(p, ref)
	if err != nil {
		return err
	}
	return b.pin(p.line, ref, digests)
}

func (b *builder) uvFiles(p *value, ref pkgref.Ref) ([]string, error) {
	sdist, err := b.child(p, "sdist", mapping)
	if err != nil {
		return nil, err
	}
	wheels, err := b.child(p, "wheels", list)
	if err != nil {
		return nil, err
	}
	var files []*value
	if sdist != nil {
		files = append(files, sdist)
	}
	if wheels != nil {
		files = append(files, wheels.values...)
	}
	var digests []string
	for _, f := range files {
		if err := b.object(f, "a file"); err != nil {
			return nil, err
		}
		if err := b.fileName(f, ref, "url", "path", "filename"); err != nil {
			return nil, err
		}
		hash, line, err := b.string(f, "hash")
		if err != nil {
			return nil, err
		}
		if hash == "" {
			return nil, b.wrong(f.line, "a file of %s %s has no hash; %s", ref.Name, ref.Version, lockAgain)
		}
		digest, strong, err := b.colonDigest(line, hash)
		if err != nil {
			return nil, err
		}
		if !strong {
			return nil, b.wrong(line, "a file of %s %s has a weak hash, which can be forged; %s", ref.Name, ref.Version, lockAgain)
		}
		digests = append(digests, digest)
	}
	return digests, nil
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
		return b.wrong(f.line, "a file of %s %s has neither a URL nor a name", ref.Name, ref.Version)
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
		return b.wrong(line, "%q is not a file of %s %s", excerpt.Of(name, maxQuoted), ref.Name, ref.Version)
	}
	return nil
}

func isFileOf(file string, ref pkgref.Ref) bool {
	f, err := pkgref.ParsePythonFile(file, ref.Name)
	return err == nil && pkgref.SameVersion(ref.Ecosystem, f.Version, ref.Version)
}
