package lockfile

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
)

// readPylock reads pylock.toml (PEP 751). Directories are the project's own and
// are left out.
func readPylock(b *builder, data []byte) error {
	root, err := b.readTOML(data)
	if err != nil {
		return err
	}
	version, _, err := b.string(root, "lock-version")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(version, "1.") {
		return b.wrongLine(1, "the file has lock-version %q; version 1 is read", text.Shorten(version, maxQuoted))
	}
	packages, err := b.childOf(root, "packages", list)
	if err != nil || packages == nil {
		return err
	}
	for _, p := range packages.values {
		if err := b.object(p, "a package"); err != nil {
			return err
		}
		if err := b.pylockPackage(p); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) pylockPackage(p *value) error {
	name, _, err := b.string(p, "name")
	if err != nil {
		return err
	}
	if p.getItem("directory") != nil {
		return b.refuseOwn(p.line, name)
	}
	version, _, err := b.string(p, "version")
	if err != nil {
		return err
	}
	for key, from := range map[string]string{"vcs": "repository", "archive": "file or a URL of its own"} {
		if p.getItem(key) != nil {
			return b.unpinnable(p.line, name, version, "comes from a "+from+", not from an index")
		}
	}
	ref, is, err := b.refOf(p.line, name, version)
	if err != nil || !is {
		return err
	}
	b.requireNames(ref, p.getItem("dependencies"))
	files, err := b.pylockFiles(p)
	if err != nil {
		return err
	}
	var digests []string
	for _, f := range files {
		found, lacks, err := b.pylockFile(f, ref)
		if err != nil {
			return err
		}
		if lacks != "" {
			return b.pinFiles(p.line, ref, nil, lacks)
		}
		digests = append(digests, found...)
	}
	return b.pinRelease(p.line, ref, digests)
}

// pylockFiles are the tables of a package's files.
func (b *builder) pylockFiles(p *value) (files []*value, err error) {
	sdist, err := b.childOf(p, "sdist", mapping)
	if err != nil {
		return nil, err
	}
	wheels, err := b.childOf(p, "wheels", list)
	if err != nil {
		return nil, err
	}
	if sdist != nil {
		files = append(files, sdist)
	}
	if wheels != nil {
		files = append(files, wheels.values...)
	}
	return files, nil
}

// pylockFile are the digests of a file; lacks is what is wrong with its hash.
func (b *builder) pylockFile(f *value, ref pkgref.Ref) (digests []string, lacks string, err error) {
	if err := b.object(f, "a file"); err != nil {
		return nil, "", err
	}
	if err := b.fileName(f, ref, "url", "path", "name"); err != nil {
		return nil, "", err
	}
	hashes, err := b.childOf(f, "hashes", mapping)
	if err != nil {
		return nil, "", err
	}
	if hashes == nil || len(hashes.keys) == 0 {
		return nil, hasNoHash, nil
	}
	for i, algorithm := range hashes.keys {
		v := hashes.values[i]
		if v.kind != textKind {
			return nil, "", b.wrongLine(v.line, "a hash must be a string")
		}
		digest, wrong := hexDigest(algorithm, v.text)
		switch wrong {
		case "":
			digests = append(digests, digest)
		case hasOddHash: // a client that knows the algorithm would ask for it
			return nil, wrong, nil
		}
	}
	if len(digests) == 0 {
		return nil, hasWeakHash, nil
	}
	return strongest(digests), "", nil
}

// strongest keeps the digests of the strongest algorithm.
func strongest(digests []string) []string {
	best := 0
	var kept []string
	for _, d := range digests {
		algorithm, _, _ := strings.Cut(d, ":")
		n := strength(algorithm)
		if n > best {
			best, kept = n, nil
		}
		if n == best {
			kept = append(kept, d)
		}
	}
	return kept
}
