package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/admission"
	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// sidecarSuffix is how a sidecar's URL and name follow from its file's.
const sidecarSuffix = ".metadata"

// described is what a file's verified metadata says.
type described struct {
	digest       string // of the metadata
	requirements []admission.Requirement
	direct       string // a package that it requires from a URL, or ""
}

// sidecar gives a file's metadata, verified: out of the file if that is
// cached, by the digest that the index gives, or out of the fetched file.
func (g *Gateway) sidecar(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, error) {
	d, ok := s.protocol.(ecosystem.Describer)
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "files of this ecosystem have no sidecar")
	}
	file := wantFile(s, project, f)
	blob, _, err := g.cached(file)
	if err != nil && !absent(err) {
		return nil, err
	}
	if err != nil && f.Sidecar != "" {
		data, err := g.offeredSidecar(ctx, s, project, f)
		if !errors.Is(err, fault.ErrNotFound) {
			return data, err
		}
	}
	if blob == nil {
		if blob, err = g.fetch(ctx, file); err != nil {
			return nil, err
		}
	}
	defer blob.Close() //nolint:errcheck // read only
	return d.Sidecar(f, blob)
}

// offeredSidecar fetches the sidecar that the index offers.
func (g *Gateway) offeredSidecar(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, error) {
	w := wanted{
		source: s, key: fileKey(s, project, f.Name+sidecarSuffix), url: f.URL + sidecarSuffix,
		digest: f.Sidecar, most: g.cfg.Limits.SidecarBytes,
	}
	blob, _, err := g.cached(w)
	if absent(err) {
		blob, err = g.fetch(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	defer blob.Close() //nolint:errcheck // read only
	return io.ReadAll(blob.Reader())
}

// describe reads a file's metadata and checks that it is the file's: its name,
// its version, and the digest that the index gives.
func (g *Gateway) describe(s *source, project string, f ecosystem.File, metadata []byte) (described, error) {
	d, ok := s.protocol.(ecosystem.Describer)
	if !ok {
		return described{}, nil
	}
	sum := sha256.Sum256(metadata)
	out := described{digest: "sha256:" + hex.EncodeToString(sum[:])}
	if f.Sidecar != "" && f.Sidecar != out.digest {
		return described{}, fault.Invalid("the metadata inside the file is not the metadata that the index offers for it")
	}
	said, err := d.Describe(metadata)
	if err != nil {
		return described{}, err
	}
	if said.Name != project || !pkgref.SameVersion(s.ecosystem(), said.Version, f.Version) {
		return described{}, fault.Invalid("the metadata is that of another release than the file's name says")
	}
	for _, r := range said.Requirements {
		if r.Direct {
			out.direct = r.Name
			continue
		}
		out.requirements = append(out.requirements, admission.Requirement{Name: r.Name, Specifier: r.Specifier})
	}
	return out, nil
}

// describeBlob describes a verified file, once per process.
func (g *Gateway) describeBlob(s *source, project string, f ecosystem.File, blob *cache.Blob) (described, error) {
	key := f.Digest + " " + f.Name + " " + f.Sidecar
	if d, ok := g.described.get(key); ok {
		return d, nil
	}
	p, ok := s.protocol.(ecosystem.Describer)
	if !ok {
		return described{}, nil
	}
	metadata, err := p.Sidecar(f, blob)
	if errors.Is(err, fault.ErrNotFound) { // this kind has none: no edges come from it
		return described{}, nil
	}
	if err != nil {
		return described{}, err
	}
	d, err := g.describe(s, project, f, metadata)
	if err == nil {
		g.described.put(key, d, int64(200+64*len(d.requirements)))
	}
	return d, err
}
