package archive

import (
	"bufio"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// ZipReader is a zip archive whose directory was found to be the only way to
// read it: the members fill the file from its first byte to the directory
// without gaps, each with a local header that says what the directory says.
type ZipReader struct {
	r       io.ReaderAt
	size    int64
	members []zipMember // in the directory's order
	byPath  map[string]int
}

// Zip reads an archive's directory and every local header. It refuses
// (ErrInvalid) what unpackers are known to read differently: a second end
// record, bytes before, between or after the members, headers that disagree,
// paths that leave the archive or occur twice, links, encryption, and methods
// other than stored and deflate. Checksums are checked when members are read.
func Zip(r io.ReaderAt, size int64, limits Limits) (*ZipReader, error) {
	limits = limits.filled()
	end, err := findEnd(r, size)
	if err != nil {
		return nil, err
	}
	z := &ZipReader{r: r, size: size}
	if z.members, err = readDirectory(r, end, limits); err != nil {
		return nil, err
	}
	if err := z.checkNames(limits); err != nil {
		return nil, err
	}
	return z, z.layOut(end.directory)
}

// checkNames checks the members' paths and what they unpack to.
func (z *ZipReader) checkNames(limits Limits) error {
	taken := make(places, len(z.members))
	z.byPath = make(map[string]int, len(z.members))
	var unpacked int64
	for i := range z.members {
		m := &z.members[i]
		if err := checkPath(m.Path, i+1, limits); err != nil {
			return err
		}
		kind := placeFile
		if m.Mode.IsDir() {
			kind = placeFolder
		}
		if err := taken.addPlace(m.Path, kind, i+1); err != nil {
			return err
		}
		z.byPath[m.Path] = i
		unpacked += m.Size
		if m.Size > limits.Unpacked || unpacked > limits.Unpacked {
			return limits.checkSize(limits.Unpacked+1, z.size)
		}
	}
	return limits.checkSize(unpacked, z.size)
}

// layOut checks that the members lie one behind the other from the first byte
// to the directory, and finds where each one's data begin.
func (z *ZipReader) layOut(directory int64) error {
	order := make([]int, len(z.members))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return int(min(1, max(-1, z.members[a].header-z.members[b].header)))
	})
	at := int64(0)
	for i, n := range order {
		next := directory
		if i+1 < len(order) {
			next = z.members[order[i+1]].header
		}
		m := &z.members[n]
		if m.header != at {
			return fault.Invalid("the archive has bytes that belong to no member, or to two")
		}
		if err := m.locate(z.r, next, n+1); err != nil {
			return err
		}
		at = next
	}
	if at != directory {
		return fault.Invalid("the archive has bytes that belong to no member")
	}
	return nil
}

// Members lists what is in the archive, in the directory's order.
func (z *ZipReader) Members() []Member {
	members := make([]Member, len(z.members))
	for i := range z.members {
		members[i] = z.members[i].Member
	}
	return members
}

// Open reads a file; ErrNotFound if the archive has none at path. Its last Read
// fails with ErrInvalid if the size or the checksum is not what the directory says.
func (z *ZipReader) Open(path string) (io.Reader, error) {
	i, ok := z.byPath[path]
	if !ok || z.members[i].Mode.IsDir() {
		return nil, fault.New(fault.ErrNotFound, "the archive has no such file")
	}
	return z.members[i].openContent(z.r, &inflater{}), nil
}

// Visit calls visit for each file in the directory's order; what visit leaves
// of the content is read all the same, so that every checksum is checked.
func (z *ZipReader) Visit(visit func(m Member, content io.Reader) error) error {
	shared := &inflater{packed: bufio.NewReaderSize(nil, 64<<10)}
	for i := range z.members {
		m := &z.members[i]
		if m.Mode.IsDir() {
			continue
		}
		content := m.openContent(z.r, shared)
		if err := visit(m.Member, content); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return err
		}
	}
	return nil
}

// zipMember is a Member with what its directory entry says of it.
type zipMember struct {
	Member
	method   uint16
	flags    uint16
	crc      uint32
	packed   int64
	header   int64 // offset of its local header
	data     int64 // offset of its first packed byte; set by locate
	rawPath  string
	streamed bool // a data descriptor follows its data
}

// The types in the upper half of the external attributes, as Unix has them.
const (
	unixTypeMask = 0o170000
	unixFile     = 0o100000
	unixFolder   = 0o040000
)

// describeMember fills in the Member; attributes are the entry's external ones.
func (m *zipMember) describeMember(attributes uint32, n int) error {
	path, folder := strings.CutSuffix(m.rawPath, "/")
	mode := attributes >> 16
	m.Path = path
	m.Mode = fs.FileMode(mode & 0o777)
	m.Raised = mode&0o6000 != 0
	switch mode & unixTypeMask {
	case 0:
	case unixFile:
		if folder {
			return fault.Invalid("the archive's member %d is a file with the path of a folder", n)
		}
	case unixFolder:
		if !folder {
			return fault.Invalid("the archive's member %d is a folder with the path of a file", n)
		}
	default:
		return fault.Invalid("the archive's member %d is neither a file nor a folder", n)
	}
	if folder {
		m.Mode |= fs.ModeDir
		if m.Size != 0 {
			return fault.Invalid("the archive's member %d is a folder with content", n)
		}
	}
	return nil
}
