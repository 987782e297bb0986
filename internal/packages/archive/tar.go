package archive

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Tar reads a tar archive to its end and calls visit for each member, in order;
// content is the member's bytes, and what visit leaves of it is skipped. It
// refuses (ErrInvalid) everything that unpackers are known to read differently:
// besides paths that leave the archive or occur twice, devices, links out of
// the archive, sizes that two headers give differently, sparse files, and data
// behind the end. An error of visit is returned as it is.
func Tar(r io.Reader, limits Limits, visit func(m Member, content io.Reader) error) error {
	t := &tarReader{blocks: r, limits: limits.filled(), places: places{}, visit: visit}
	for {
		done, err := t.nextHeader()
		if err != nil || done {
			return err
		}
	}
}

// tarReader is one pass over a tar archive.
type tarReader struct {
	blocks   io.Reader
	limits   Limits
	visit    func(m Member, content io.Reader) error
	places   places
	members  int
	global   bool // a global header came
	unpacked int64
	pending  extension // what extension headers say of the next member
	block    [blockSize]byte
}

// nextHeader reads one header with what belongs to it; done tells that it was the end.
func (t *tarReader) nextHeader() (done bool, err error) {
	ended, err := t.readBlock()
	if err != nil {
		return false, err
	}
	if ended || t.block == [blockSize]byte{} {
		return true, t.checkEnd(ended)
	}
	h, err := parseHeader(&t.block)
	if err != nil {
		return false, err
	}
	if h.extends() {
		return false, t.extend(h)
	}
	return false, t.readMember(h)
}

// readBlock reads the next block; ended tells that there is none.
func (t *tarReader) readBlock() (ended bool, err error) {
	_, err = io.ReadFull(t.blocks, t.block[:])
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, broken(err, "the archive ends within a header")
}

// checkEnd checks that nothing follows the end, which is a block of zeros.
func (t *tarReader) checkEnd(missing bool) error {
	if t.pending.isSet() {
		return fault.Invalid("the archive ends after an extension header")
	}
	if missing {
		return fault.Invalid("the archive has no end: it was cut")
	}
	for {
		n, err := io.ReadFull(t.blocks, t.block[:])
		for _, b := range t.block[:n] {
			if b != 0 {
				return fault.Invalid("the archive has data after its end")
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return broken(err, "the archive can't be read")
		}
	}
}

func (t *tarReader) readMember(h header) error {
	t.members++
	if t.members > t.limits.Members {
		return fault.Invalid("the archive has more than %d members", t.limits.Members)
	}
	own := h.path
	if h.flag == flagOldFile && strings.HasSuffix(own, "/") {
		return fault.Invalid("the archive's member %d is a file with the path of a folder", t.members)
	}
	h, err := t.pending.applyTo(h, t.members)
	if err != nil {
		return err
	}
	t.pending = extension{}
	m, kind, err := h.makeMember(t.members)
	if err != nil {
		return err
	}
	m.Extended = own != h.path
	t.unpacked += m.Size
	if err := t.limits.checkSize(t.unpacked, t.unpacked); err != nil {
		return err
	}
	if m.Path == "." && m.Mode.IsDir() { // the folder that all is in
		return nil
	}
	if t.limits.Careless {
		m.Path = undotted(m.Path)
	}
	if err := t.addPlace(m, h, kind); err != nil {
		return err
	}
	content := &sized{r: t.blocks, left: m.Size}
	if err := t.visit(m, content); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, content); err != nil {
		return err
	}
	return t.skipBytes(padding(m.Size))
}

func (t *tarReader) addPlace(m Member, h header, kind placeKind) error {
	if err := checkPath(m.Path, t.members, t.limits); err != nil {
		return err
	}
	switch {
	case h.flag == flagHardLink:
		// A link to what comes later, or to what is outside, is whatever was on
		// the disk before.
		if !t.places.hasFile(m.Link) {
			return fault.Invalid("the archive's member %d is a link to a file that is not before it in the archive", t.members)
		}
	case kind == placeLink:
		if err := checkTarget(m.Path, m.Link, t.members, t.limits); err != nil {
			return err
		}
	}
	if t.limits.Careless && kind == placeFile && h.flag != flagHardLink && t.places.hasFile(m.Path) {
		return nil
	}
	return t.places.addPlace(m.Path, kind, t.members)
}

// undotted is a path without the "." inside it.
func undotted(path string) string {
	for strings.Contains(path, "/./") {
		path = strings.ReplaceAll(path, "/./", "/")
	}
	return path
}

// checkTarget refuses a symbolic link out of the archive. Since no member is
// below a link, climbing first and descending then can't be led elsewhere by
// another link; descending first can.
func checkTarget(path, target string, n int, limits Limits) error {
	rest := strings.TrimSuffix(target, "/")
	depth := strings.Count(path, "/")
	for {
		if rest == ".." {
			rest, depth = "", depth-1
			break
		}
		after, climbs := strings.CutPrefix(rest, "../")
		if !climbs {
			after, climbs = strings.CutPrefix(rest, "./")
			if !climbs {
				break
			}
			depth++
		}
		rest, depth = after, depth-1
	}
	if depth < 0 || strings.HasPrefix(target, "/") {
		return fault.Invalid("the archive's member %d is a link out of the archive", n)
	}
	if rest == "" || rest == "." {
		if target == "" {
			return fault.Invalid("the archive's member %d is a link to nothing", n)
		}
		return nil
	}
	if err := checkPath(rest, n, limits); err != nil {
		return fault.Wrap(fault.ErrInvalid, err, "the archive's member %d is a link whose target is no plain path", n)
	}
	return nil
}

func (t *tarReader) skipBytes(n int64) error {
	if _, err := io.CopyN(io.Discard, t.blocks, n); err != nil {
		return broken(err, "the archive was cut")
	}
	return nil
}

// sized reads exactly left bytes, or says that the archive was cut.
type sized struct {
	r    io.Reader
	left int64
}

func (s *sized) Read(p []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if int64(len(p)) > s.left {
		p = p[:s.left]
	}
	n, err := s.r.Read(p)
	s.left -= int64(n)
	if err != nil && s.left > 0 {
		return n, broken(err, "the archive was cut")
	}
	if s.left == 0 {
		return n, nil
	}
	return n, err
}

// makeMember makes a Member of a header whose extensions were applied.
func (h header) makeMember(n int) (Member, placeKind, error) {
	m := Member{Path: h.path, Mode: fs.FileMode(h.mode & 0o777), Size: h.size, Link: h.link, Raised: h.mode&0o6000 != 0}
	kind := placeFile
	switch h.flag {
	case flagFile, flagOldFile:
		if strings.HasSuffix(h.path, "/") {
			return m, kind, fault.Invalid("the archive's member %d is a file with the path of a folder", n)
		}
		m.Link = ""
	case flagFolder:
		kind = placeFolder
		m.Path, m.Mode, m.Link = strings.TrimSuffix(h.path, "/"), m.Mode|fs.ModeDir, ""
	case flagHardLink:
		m.Link = strings.TrimPrefix(h.link, "./")
	case flagSymlink:
		kind = placeLink
		m.Mode |= fs.ModeSymlink
	default:
		return m, kind, fault.Invalid("the archive's member %d is neither a file nor a folder nor a link", n)
	}
	if kind != placeFile || h.flag == flagHardLink {
		if h.size != 0 {
			return m, kind, fault.Invalid("the archive's member %d is no file but has a size", n)
		}
	}
	return m, kind, nil
}

// broken words a failed read: running out of bytes is the archive's fault, and
// anything else is returned as it is.
func broken(err error, sentence string) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Invalid("%s", sentence)
	}
	return err
}
