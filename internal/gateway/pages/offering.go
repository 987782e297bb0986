package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/policy"
)

// offering is the page as runs see it that have source distributions built: in the place of
// one stands what is built of it, unless its release has a file for all systems. Of several
// source distributions of a release the first counts. It is another page, with a digest of
// its own.
func (p *Page) offering(s Source) *Page {
	b, ok := s.Protocol.(ecosystem.Builder)
	if !ok {
		return p
	}
	settled := map[string]bool{} // versions of which nothing more is built
	for _, f := range p.Index.Files {
		if b.Everywhere(f) {
			settled[f.Version] = true
		}
	}
	var files []ecosystem.File
	for i, f := range p.Index.Files {
		if f.Kind != policy.KindSdist || settled[f.Version] {
			continue
		}
		built, ok := b.Built(f)
		if _, taken := p.byPath[built.Path]; !ok || taken {
			continue
		}
		if files == nil {
			files = slices.Clone(p.Index.Files)
		}
		settled[f.Version], files[i] = true, built
	}
	if files == nil {
		return p
	}
	with, index := *p, *p.Index
	index.Files = files
	with.Index, with.byPath = &index, make(map[string]int, len(files))
	for i, f := range files {
		with.byPath[f.Path] = i
	}
	sum := sha256.Sum256([]byte(p.Digest + " with what is built"))
	with.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return &with
}

// Built is the file at a path that is built of one of the page's, and that one.
func (p *Page) Built(s Source, path string) (built, of ecosystem.File, ok bool) {
	b, can := s.Protocol.(ecosystem.Builder)
	if !can {
		return built, of, false
	}
	for _, f := range p.Index.Files {
		if f.Kind != policy.KindSdist {
			continue
		}
		if built, ok = b.Built(f); ok && built.Path == path {
			built.Published = p.Published(&f)
			return built, f, true
		}
	}
	return ecosystem.File{}, of, false
}
