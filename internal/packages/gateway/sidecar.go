package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/artifacts"
)

// sidecarSuffix is how a sidecar's URL and name follow from its file's.
const sidecarSuffix = ".metadata"

// metadata gives a file's metadata, and what it says; an error is also that nobody may
// have the file.
func (is *inspections) metadata(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, described, error) {
	data, err := is.sidecar(ctx, s, project, f)
	if err != nil {
		return nil, described{}, err
	}
	d, err := describeRelease(s, project, f, data)
	if err == nil {
		err = d.servable()
	}
	return data, d, err
}

// sidecar gives a file's metadata, verified: out of the file if that is
// cached, by the digest that the index gives, or out of the fetched file.
func (is *inspections) sidecar(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, error) {
	d, ok := s.Protocol.(ecosystem.Describer)
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "files of this ecosystem have no sidecar")
	}
	file := s.wanted(project, f)
	v, _, err := is.artifacts.Cached(file)
	if err != nil && !artifacts.Absent(err) {
		return nil, err
	}
	if err != nil && f.Sidecar != "" {
		data, err := is.offeredSidecar(ctx, s, project, f)
		if !errors.Is(err, fault.ErrNotFound) {
			return data, err
		}
	}
	if v == nil {
		if v, err = is.artifacts.Fetch(ctx, file); err != nil {
			return nil, err
		}
	}
	defer v.Close() //nolint:errcheck // read only
	return d.Sidecar(f, v)
}

// offeredSidecar fetches the sidecar that the index offers.
func (is *inspections) offeredSidecar(ctx context.Context, s *source, project string, f ecosystem.File) ([]byte, error) {
	v, err := is.artifacts.Get(ctx, artifacts.Wanted{
		Key: s.cacheKey(project, f.Name+sidecarSuffix), URL: f.URL + sidecarSuffix, Digest: f.Sidecar, Most: is.sidecarBytes,
		Client: s.Client, Witness: s.witness(),
	})
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // read only
	return io.ReadAll(v.Reader())
}

// describeRelease reads a file's metadata and checks that it is the file's: its name,
// its version, and the digest that the index gives.
func describeRelease(s *source, project string, f ecosystem.File, metadata []byte) (described, error) {
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

// describeFile describes a verified file by the metadata in it, once per process.
func (is *inspections) describeFile(s *source, project string, f ecosystem.File, v *artifacts.Verified) (described, error) {
	key := inspectionKey{ecosystem: s.Ecosystem(), digest: v.Digest(), project: project, file: f.Name, release: f.Version, sidecar: f.Sidecar}
	if d, ok := is.memory.Get(key); ok {
		return d, nil
	}
	p, ok := s.Protocol.(ecosystem.Describer)
	if !ok {
		return described{}, nil
	}
	metadata, err := p.Sidecar(f, v)
	if errors.Is(err, fault.ErrNotFound) { // this kind has none: no edges come from it
		return described{}, nil
	}
	if err != nil {
		return described{}, err
	}
	d, err := describeRelease(s, project, f, metadata)
	if err == nil {
		is.memory.Put(key, d, d.sizeInMemory())
	}
	return d, err
}
