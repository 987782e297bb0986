package pypi

import (
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/archive"
	"github.com/cofferdam-dev/cofferdam/internal/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/fault"
)

// inspectSdist looks into a source distribution: one folder with a PKG-INFO of
// the file's own release. What the release requires is what that says; a build
// may come to something else, which then is judged by itself.
func inspectSdist(file ecosystem.File, content ecosystem.Content) (ecosystem.Inspection, error) {
	var s sdist
	if err := s.unpack(file.Name, content); err != nil {
		return ecosystem.Inspection{}, err
	}
	if s.metadata == nil {
		return ecosystem.Inspection{}, fault.Invalid("the source distribution has no PKG-INFO in its folder")
	}
	d, err := describeAs(file, s.metadata)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	s.inside.Sorted()
	return ecosystem.Inspection{Description: d, Bundled: s.seen.bundled, Inside: s.inside}, nil
}

// sdist is what is collected while a source distribution is read.
type sdist struct {
	top      string
	metadata []byte
	seen     contents
	inside   ecosystem.Inside // of its source; what a build makes of it is not known
}

func (s *sdist) unpack(name string, content ecosystem.Content) error {
	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return archive.TarGz(content, content.Size(), archive.Limits{}, s.visit)
	case strings.HasSuffix(name, ".zip"):
		z, err := archive.Zip(content, content.Size(), archive.Limits{})
		if err != nil {
			return err
		}
		return z.Visit(s.visit)
	case strings.HasSuffix(name, ".tar"):
		return archive.Tar(io.NewSectionReader(content, 0, content.Size()), archive.Limits{}, s.visit)
	}
	return fault.Invalid("the source distribution is packed in a way that can't be looked into; .tar.gz and .zip can be")
}

func (s *sdist) visit(m archive.Member, content io.Reader) error {
	top, rest, _ := strings.Cut(m.Path, "/")
	if s.top == "" {
		s.top = top
	}
	if top != s.top {
		return fault.Invalid("the source distribution has more than one folder at its top")
	}
	s.seen.add(rest, "")
	if m.Mode.IsRegular() && rest != "" {
		s.inside.AddPath(rest, nil)
	}
	if rest != "PKG-INFO" {
		return nil
	}
	if !m.Mode.IsRegular() || m.Link != "" {
		return fault.Invalid("the source distribution's PKG-INFO is no file")
	}
	var err error
	s.metadata, err = readAll(content, "PKG-INFO", maxMetadata)
	return err
}
