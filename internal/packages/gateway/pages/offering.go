package pages

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// offering is the page as runs see it that have things made apart: in the place of a file
// stands what is made of it, unless its release has a file for all systems. Of several
// source distributions of a release the first counts. It is another page, with a digest of
// its own.
func (p *Page) offering(s Source) *Page {
	b, ok := s.Protocol.(ecosystem.Builder)
	if !ok {
		return p
	}
	settled := map[string]bool{} // versions of which nothing more is made
	for _, f := range p.Index.Files {
		if b.Everywhere(f) {
			settled[f.Version] = true
		}
	}
	var files []ecosystem.File
	for i, f := range p.Index.Files {
		if settled[f.Version] {
			continue
		}
		made, ok := s.builtFile(b, f)
		if _, taken := p.byPath[made.Path]; !ok || taken {
			continue
		}
		if files == nil {
			files = slices.Clone(p.Index.Files)
		}
		settled[f.Version], files[i] = true, made
	}
	if files == nil {
		return p
	}
	with, index := *p, *p.Index
	index.Files = files
	with.Index, with.byPath = &index, make(places, len(files))
	for i, f := range files {
		with.byPath.putPath(&f, i)
	}
	sum := sha256.Sum256([]byte(p.Digest + " with what is built"))
	with.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return &with
}

// builtFile is what is made of a file for the runs that the source is for; false: nothing.
func (s Source) builtFile(b ecosystem.Builder, f ecosystem.File) (ecosystem.File, bool) {
	made, ok := b.Built(f)
	return made, ok && slices.Contains(s.Makes, made.Kind)
}

// Built is the file at a path that is made of one of the page's, and that one.
func (p *Page) Built(s Source, path string) (built, of ecosystem.File, ok bool) {
	b, can := s.Protocol.(ecosystem.Builder)
	if !can {
		return built, of, false
	}
	for _, f := range p.Index.Files {
		if built, ok = s.builtFile(b, f); ok && built.Path == path {
			built.Published = p.Published(&f)
			return built, f, true
		}
	}
	return ecosystem.File{}, of, false
}
