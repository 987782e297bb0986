package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/cache"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

// sidecarSuffix is how a sidecar's URL and name follow from its file's.
const sidecarSuffix = ".metadata"

// sidecar gives a file's metadata, verified: out of the file if that is
// cached, by the digest that the index gives, or out of the fetched file.
func (g *Gateway) sidecar(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, error) {
	d, ok := s.Protocol.(ecosystem.Describer)
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "files of this ecosystem have no sidecar")
	}
	file := wantFile(s, project, f)
	v, _, err := g.cached(file)
	if err != nil && !absent(err) {
		return nil, err
	}
	if err != nil && f.Sidecar != "" {
		data, err := g.offeredSidecar(ctx, s, project, f)
		if !errors.Is(err, fault.ErrNotFound) {
			return data, err
		}
	}
	if v == nil {
		if v, err = g.fetch(ctx, file); err != nil {
			return nil, err
		}
	}
	defer v.Close() //nolint:errcheck // read only
	return d.Sidecar(f, v)
}

// offeredSidecar fetches the sidecar that the index offers.
func (g *Gateway) offeredSidecar(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, error) {
	w := wanted{
		source: s, key: fileKey(s, project, f.Name+sidecarSuffix), url: f.URL + sidecarSuffix,
		digest: f.Sidecar, most: g.cfg.Limits.SidecarBytes,
	}
	v, _, err := g.cached(w)
	if absent(err) {
		v, err = g.fetch(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // read only
	return io.ReadAll(v.Reader())
}

// describe reads a file's metadata and checks that it is the file's: its name,
// its version, and the digest that the index gives.
func (g *Gateway) describe(s *source, project string, f ecosystem.File, metadata []byte) (described, error) {
	d, ok := s.Protocol.(ecosystem.Describer)
	if !ok {
		return described{}, nil
	}
	sum := sha256.Sum256(metadata)
	out := described{Digest: "sha256:" + hex.EncodeToString(sum[:])}
	if f.Sidecar != "" && f.Sidecar != out.Digest {
		return described{}, fault.Invalid("the metadata inside the file is not the metadata that the index offers for it")
	}
	said, err := d.Describe(metadata)
	if err != nil {
		return described{}, err
	}
	if said.Name != project || !pkgref.SameVersion(s.Ecosystem(), said.Version, f.Version) {
		return described{}, fault.Invalid("the metadata is that of another release than the file's name says")
	}
	out.require(said.Requirements)
	return out, nil
}

// describeBlob describes a verified file by the metadata in it, once per process.
func (g *Gateway) describeBlob(s *source, project string, f ecosystem.File, blob *cache.Blob) (described, error) {
	key := inspectionKey{ecosystem: s.Ecosystem(), digest: blob.Digest(), project: project, file: f.Name, release: f.Version, sidecar: f.Sidecar}
	if d, ok := g.described.Get(key); ok {
		return d, nil
	}
	p, ok := s.Protocol.(ecosystem.Describer)
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
		g.described.Put(key, d, d.size())
	}
	return d, err
}
