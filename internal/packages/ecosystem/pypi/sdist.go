package pypi

import (
	"io"
	"path"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/license"
)

// inspectSdist looks into a source distribution: one folder with a PKG-INFO of
// the file's own release. The release requires what that says; a build
// may come to something else, which then is judged by itself.
func inspectSdist(file ecosystem.File, content ecosystem.Content) (ecosystem.Inspection, error) {
	var s sdist
	if err := unpackSdist(file.Name, content, s.visitMember); err != nil {
		return ecosystem.Inspection{}, err
	}
	if s.metadata == nil {
		return ecosystem.Inspection{}, fault.Invalid("the source distribution has no PKG-INFO in its folder")
	}
	d, err := describeAs(file, s.metadata)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	own, err := s.ownBackend(file.Name, content)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	s.project.builtCode(&s.inside, s.code, own)
	s.inside.Sources = s.sources.Told()
	s.inside.Sorted()
	return ecosystem.Inspection{Description: d, Bundled: s.seen.bundled, Inside: s.inside, Said: publication(s.metadata, s.licenses.Files)}, nil
}

// sdist is what is collected while a source distribution is read.
type sdist struct {
	top      string
	metadata []byte
	seen     contents
	inside   ecosystem.Inside // of its source; what a build makes of it is not known
	sources  ecosystem.Sources
	licenses license.Claims
	project  project
	reader   codeReader
	code     []code // the Python files at the top of its folder
	more     bool   // there are more of them than are looked at, which the last one says
}

func unpackSdist(name string, content ecosystem.Content, visit func(archive.Member, io.Reader) error) error {
	switch {
	case strings.HasSuffix(name, ".tar.gz"), strings.HasSuffix(name, ".tgz"):
		return archive.TarGz(content, content.Size(), archive.Limits{}, visit)
	case strings.HasSuffix(name, ".zip"):
		z, err := archive.Zip(content, content.Size(), archive.Limits{})
		if err != nil {
			return err
		}
		return z.Visit(visit)
	case strings.HasSuffix(name, ".tar"):
		return archive.Tar(io.NewSectionReader(content, 0, content.Size()), archive.Limits{}, visit)
	}
	return fault.Invalid("the source distribution is packed in a way that can't be looked into; .tar.gz and .zip can be")
}

func (s *sdist) visitMember(m archive.Member, content io.Reader) error {
	top, rest, _ := strings.Cut(m.Path, "/")
	if s.top == "" {
		s.top = top
	}
	if top != s.top {
		return fault.Invalid("the source distribution has more than one folder at its top")
	}
	s.seen.addPath(rest, "")
	if rest == "PKG-INFO" {
		return s.describeMember(m, content)
	}
	if !m.Mode.IsRegular() || m.Link != "" || rest == "" {
		return s.linked(rest, m)
	}
	head, content, err := ecosystem.Head(content)
	if err != nil {
		return err
	}
	s.inside.AddPath(rest, head)
	s.sources.Add(rest)
	return s.collect(rest, m.Size, content)
}

// describeMember reads the PKG-INFO, which counts as a file of the distribution as any other does.
func (s *sdist) describeMember(m archive.Member, content io.Reader) error {
	if !m.Mode.IsRegular() || m.Link != "" {
		return fault.Invalid("the source distribution's PKG-INFO is no file")
	}
	s.inside.AddPath("PKG-INFO", nil)
	var err error
	s.metadata, err = readAll(content, "PKG-INFO", maxMetadata)
	return err
}

// linked takes what is no file of its own, and runs all the same.
func (s *sdist) linked(name string, m archive.Member) error {
	switch {
	case m.Link == "":
	case name == setupFile:
		s.code = append(s.code, linkedCode(name, m))
	case name == projectFile:
		s.project = project{unread: true}
	}
	return nil
}

// collect keeps of the files at the top what tells of the build and the licence.
func (s *sdist) collect(name string, size int64, content io.Reader) error {
	read := func(most int64) ([]byte, error) { return io.ReadAll(io.LimitReader(content, most)) }
	switch folder, _, below := strings.Cut(name, "/"); {
	case below && folder != "LICENSES":
		return nil
	case name == projectFile:
		text, err := read(maxProjectFile + 1)
		s.project = readProject(text)
		return err
	case path.Ext(name) != ".py":
	case name == setupFile || len(s.code) < maxCodeFiles:
		c, err := s.reader.readCode(name, size, content)
		s.code = append(s.code, c)
		return err
	case !s.more:
		s.more = true
		s.code = append(s.code, unreadCode(name, size))
	}
	return s.licenses.Collect(name, read)
}

// ownBackend reads the files of a build backend that the distribution brings. They may come
// before the pyproject.toml that names them, so the archive is read again.
func (s *sdist) ownBackend(name string, content ecosystem.Content) (own []code, err error) {
	if len(s.project.paths) == 0 {
		return nil, nil
	}
	err = unpackSdist(name, content, func(m archive.Member, content io.Reader) error {
		_, rest, _ := strings.Cut(m.Path, "/")
		switch {
		case m.Mode.IsDir() || len(own) > maxCodeFiles || !s.project.inTree(rest):
			return nil
		case len(own) == maxCodeFiles:
			own = append(own, unreadCode(rest, m.Size))
			return nil
		case !m.Mode.IsRegular() || m.Link != "":
			own = append(own, linkedCode(rest, m))
			return nil
		}
		c, err := s.reader.readCode(rest, m.Size, content)
		own = append(own, c)
		return err
	})
	return own, err
}
