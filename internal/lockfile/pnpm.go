package lockfile

import (
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/excerpt"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// readPnpm reads pnpm-lock.yaml of versions 6 and 9. Directories are the
// project's own and are left out.
func readPnpm(b *builder, data []byte) error {
	root, err := b.readYAML(data)
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
	if !strings.HasPrefix(version, "6.") && !strings.HasPrefix(version, "9.") {
		return b.wrong(root.line, "the file has lockfileVersion %q; 6 and 9 are read: write it again with pnpm 8 or later", excerpt.Of(version, maxQuoted))
	}
	packages, err := b.child(root, "packages", mapping)
	if err != nil || packages == nil {
		return err
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
	return b.pnpmSnapshots(root)
}

// pnpmSnapshots reads what version 9 says of the packages' dependencies: one
// entry for each set of peers that a package was installed with.
func (b *builder) pnpmSnapshots(root *value) error {
	snapshots, err := b.child(root, "snapshots", mapping)
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
	resolution, err := b.child(entry, "resolution", mapping)
	if err != nil {
		return err
	}
	line := entry.line
	if resolution == nil {
		return b.wrong(line, "%q has no resolution", excerpt.Of(key, maxQuoted))
	}
	if resolution.get("directory") != nil {
		return nil
	}
	sri, at, err := b.string(resolution, "integrity")
	if err != nil {
		return err
	}
	made := b.resolved && at == 0 && resolution.get("tarball") != nil // whose URL is no published tarball's
	if (at == 0 && !made) || resolution.get("type") != nil || resolution.get("repo") != nil || resolution.get("commit") != nil {
		return b.wrong(resolution.line, "%q comes from a repository or a URL, or has no hash; only releases of a registry can be locked", excerpt.Of(key, maxQuoted))
	}
	bare, _, _ := strings.Cut(strings.TrimPrefix(key, "/"), "(")
	cut := strings.LastIndexByte(bare, '@')
	if cut <= 0 {
		return b.wrong(line, "%q is not name@version", excerpt.Of(key, maxQuoted))
	}
	ref, err := b.ref(line, bare[:cut], bare[cut+1:])
	if err != nil {
		return err
	}
	if made {
		return b.pin(line, ref, nil)
	}
	if err := b.npmTarball(resolution, "tarball", ref); err != nil {
		return err
	}
	b.requirePins(ref, entry) // of version 6; version 9 has snapshots
	digests, err := b.integrity(at, ref.Name+" "+ref.Version, sri)
	if err != nil {
		return err
	}
	return b.pin(line, ref, digests)
}
