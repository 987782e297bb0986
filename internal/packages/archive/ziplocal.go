package archive

import (
	"encoding/binary"
	"io"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// locate reads the member's local header, which must say what the directory
// says, and checks that its data and their descriptor end where the next
// member or the directory begins.
func (m *zipMember) locate(r io.ReaderAt, next int64, n int) error {
	disagree := fault.Invalid("the directory and the header of the archive's member %d disagree", n)
	var f [headerLength]byte
	if next-m.header < headerLength {
		return disagree
	}
	if _, err := r.ReadAt(f[:], m.header); err != nil {
		return broken(err, "the archive was cut")
	}
	le := binary.LittleEndian
	path, extra := int64(le.Uint16(f[26:])), int64(le.Uint16(f[28:]))
	if string(f[:4]) != headerSignature || path != int64(len(m.rawPath)) || next-m.header-headerLength < path+extra {
		return disagree
	}
	rest := make([]byte, path+extra)
	if _, err := r.ReadAt(rest, m.header+headerLength); err != nil {
		return broken(err, "the archive was cut")
	}
	if le.Uint16(f[6:]) != m.flags || le.Uint16(f[8:]) != m.method || string(rest[:path]) != m.rawPath {
		return disagree
	}
	sizes, err := readExtra(rest[path:], m.rawPath, zip64Fields{unpacked: le.Uint32(f[22:]), packed: le.Uint32(f[18:])}, n)
	if err != nil {
		return err
	}
	m.data = m.header + headerLength + path + extra
	after := next - m.data - m.packed
	if after < 0 {
		return fault.Invalid("the archive's member %d overlaps the next one", n)
	}
	if m.streamed {
		return m.describedBy(r, le.Uint32(f[14:]), sizes, after, n)
	}
	if le.Uint32(f[14:]) != m.crc || sizes.unpacked != m.Size || sizes.packed != m.packed {
		return disagree
	}
	if after != 0 {
		return fault.Invalid("the archive has bytes that belong to no member")
	}
	return nil
}

// describedBy checks a streamed member: its header says nothing or the truth,
// and the descriptor behind its data the truth.
func (m *zipMember) describedBy(r io.ReaderAt, crc uint32, sizes zipSizes, length int64, n int) error {
	blank := crc == 0 && sizes.unpacked == 0 && sizes.packed == 0
	if !blank && (crc != m.crc || sizes.unpacked != m.Size || sizes.packed != m.packed) {
		return fault.Invalid("the directory and the header of the archive's member %d disagree", n)
	}
	var d [24]byte
	if length > int64(len(d)) {
		return fault.Invalid("the archive has bytes that belong to no member")
	}
	if _, err := r.ReadAt(d[:length], m.data+m.packed); err != nil {
		return broken(err, "the archive was cut")
	}
	if !m.descriptor(d[:length]) {
		return fault.Invalid("the directory and the descriptor of the archive's member %d disagree", n)
	}
	return nil
}

// descriptor reports whether d says what the directory says, in one of its four
// forms: with or without a signature, sizes of 32 or 64 bits.
func (m *zipMember) descriptor(d []byte) bool {
	le := binary.LittleEndian
	switch len(d) {
	case 16, 24:
		if string(d[:4]) != descriptorSign {
			return false
		}
		d = d[4:]
	case 12, 20:
	default:
		return false
	}
	if le.Uint32(d) != m.crc {
		return false
	}
	if len(d) == 12 {
		return int64(le.Uint32(d[4:])) == m.packed && int64(le.Uint32(d[8:])) == m.Size
	}
	return le.Uint64(d[4:]) == uint64(m.packed) && le.Uint64(d[12:]) == uint64(m.Size)
}
