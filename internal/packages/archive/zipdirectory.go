package archive

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf8"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// Methods and flags that are understood; others are refused.
const (
	methodStored  = 0
	methodDeflate = 8

	flagLevel    = 0x0006 // how hard the compressor tried
	flagStreamed = 0x0008
	flagUTF8     = 0x0800
)

// readDirectory reads the directory: exactly as many entries as the end says,
// in exactly as many bytes.
func readDirectory(r io.ReaderAt, end zipEnd, limits Limits) ([]zipMember, error) {
	if end.entries > int64(limits.Members) {
		return nil, fault.Invalid("the archive has more than %d members", limits.Members)
	}
	if end.length < end.entries*directoryLength {
		return nil, fault.Invalid("the archive's directory is not as long as its end says")
	}
	d := directoryReader{r: bufio.NewReader(io.NewSectionReader(r, end.directory, end.length)), left: end.length}
	members := make([]zipMember, end.entries)
	for i := range members {
		if err := d.readEntry(&members[i], i+1); err != nil {
			return nil, err
		}
	}
	if d.left != 0 {
		return nil, fault.Invalid("the archive's directory is not as long as its end says")
	}
	return members, nil
}

// directoryReader is one pass over a directory.
type directoryReader struct {
	r     io.Reader
	left  int64
	fixed [directoryLength]byte
	rest  []byte
}

func (d *directoryReader) readFull(p []byte) error {
	d.left -= int64(len(p))
	_, err := io.ReadFull(d.r, p)
	return broken(err, "the archive's directory is not as long as its end says")
}

func (d *directoryReader) readEntry(m *zipMember, n int) error {
	if err := d.readFull(d.fixed[:]); err != nil {
		return err
	}
	f, le := d.fixed[:], binary.LittleEndian
	if string(f[:4]) != directorySignature {
		return fault.Invalid("the archive's directory has something else where its entry %d should be", n)
	}
	path, extra, comment := int(le.Uint16(f[28:])), int(le.Uint16(f[30:])), int(le.Uint16(f[32:]))
	if need := path + extra + comment; cap(d.rest) < need {
		d.rest = make([]byte, need)
	}
	d.rest = d.rest[:path+extra+comment]
	if err := d.readFull(d.rest); err != nil {
		return err
	}
	m.flags, m.method, m.crc = le.Uint16(f[8:]), le.Uint16(f[10:]), le.Uint32(f[16:])
	m.streamed = m.flags&flagStreamed != 0
	m.rawPath = string(d.rest[:path])
	disk := le.Uint16(f[34:])
	fields := zip64Fields{unpacked: le.Uint32(f[24:]), packed: le.Uint32(f[20:]), header: le.Uint32(f[42:]), hasHeader: true}
	sizes, err := readExtra(d.rest[path:path+extra], m.rawPath, fields, n)
	if err != nil {
		return err
	}
	m.Size, m.packed, m.header = sizes.unpacked, sizes.packed, sizes.header
	if err := m.checkMethod(disk, n); err != nil {
		return err
	}
	return m.describeMember(le.Uint32(f[38:]), n)
}

func (m *zipMember) checkMethod(disk uint16, n int) error {
	switch {
	case m.flags&^(flagLevel|flagStreamed|flagUTF8) != 0:
		return fault.Invalid("the archive's member %d is encrypted, or has flags that are not understood", n)
	case m.method != methodStored && m.method != methodDeflate:
		return fault.Invalid("the archive's member %d is compressed with a method other than deflate", n)
	case m.method == methodStored && m.packed != m.Size:
		return fault.Invalid("two sizes of the archive's member %d disagree", n)
	case m.method == methodStored && m.streamed && m.Size != 0:
		return fault.Invalid("the end of the archive's member %d can't be known without the directory", n)
	case disk != 0:
		return fault.Invalid("the archive is a part of several")
	case m.flags&flagUTF8 == 0 && !isASCII(m.rawPath):
		return fault.Invalid("the path of the archive's member %d is in an unknown encoding", n)
	}
	return nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// zip64Fields are the fields that a header may move into its extra data.
type zip64Fields struct {
	unpacked, packed, header uint32
	hasHeader                bool // a local header has no offset
}

type zipSizes struct{ unpacked, packed, header int64 }

// Kinds of extra data that say something about a member that its header says too.
const (
	extraZip64 = 0x0001
	extraPath  = 0x7075 // the path once more
)

// readExtra reads a header's extra data: whole records only, sizes once, and
// only those that the header left to them.
func readExtra(extra []byte, path string, fields zip64Fields, n int) (zipSizes, error) {
	var large []byte
	seen := false
	for len(extra) > 0 {
		if len(extra) < 4 {
			return zipSizes{}, fault.Invalid("the extra data of the archive's member %d are malformed", n)
		}
		kind, length := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		extra = extra[4:]
		if length > len(extra) {
			return zipSizes{}, fault.Invalid("the extra data of the archive's member %d are malformed", n)
		}
		data := extra[:length]
		extra = extra[length:]
		switch {
		case kind == extraZip64 && seen:
			return zipSizes{}, fault.Invalid("the extra data of the archive's member %d give its size twice", n)
		case kind == extraZip64:
			large, seen = data, true
		case kind == extraPath && (len(data) < 5 || string(data[5:]) != path):
			return zipSizes{}, fault.Invalid("the archive's member %d has two paths", n)
		}
	}
	return fields.resolveSizes(large, n)
}

// resolveSizes gives the sizes. Extra data that repeat sizes which the header did
// not leave to them (some writers do) must say the same.
func (f zip64Fields) resolveSizes(large []byte, n int) (zipSizes, error) {
	if f.repeatedBy(large) {
		large = nil
	}
	ok := true
	next := func(field uint32) int64 {
		if field != most32 {
			return int64(field)
		}
		if len(large) < 8 {
			ok = false
			return 0
		}
		v := binary.LittleEndian.Uint64(large)
		large = large[8:]
		if v >= 1<<62 {
			ok = false
			return 0
		}
		return int64(v)
	}
	s := zipSizes{unpacked: next(f.unpacked), packed: next(f.packed)}
	if f.hasHeader {
		s.header = next(f.header)
	}
	if !ok || len(large) != 0 {
		return zipSizes{}, fault.Invalid("two sizes of the archive's member %d disagree", n)
	}
	return s, nil
}

// repeatedBy reports whether large says, in order, what the header says itself.
func (f zip64Fields) repeatedBy(large []byte) bool {
	fields := []uint32{f.unpacked, f.packed}
	if f.hasHeader && len(large) == 24 {
		fields = append(fields, f.header)
	}
	if len(large) != 8*len(fields) {
		return false
	}
	for i, field := range fields {
		if field == most32 || binary.LittleEndian.Uint64(large[8*i:]) != uint64(field) {
			return false
		}
	}
	return true
}
