package archive_test

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// entry is one member of a zip written by hand, so that it can lie. A nil
// function changes nothing.
type entry struct {
	path    string
	data    string
	stored  bool
	flags   uint16
	attrs   uint32
	extra   []byte         // of the directory
	local   []byte         // extra of the local header
	after   []byte         // a descriptor, or anything
	tail    []byte         // at the end of the packed data, counted in its size
	header  func(b []byte) // changes the local header
	central func(b []byte) // changes the directory's entry
	packed  func(b []byte) // changes the packed data
}

// maker writes zips.
type maker struct {
	entries []entry
	before  []byte         // in front of everything; offsets count it
	between []byte         // between members and directory
	end64   bool           // with the records for large archives
	comment string         // of the end
	end     func(b []byte) // changes the end record
	large   func(b []byte) // changes the zip64 end and locator
	behind  []byte
}

func (m maker) zip(tb testing.TB) []byte {
	tb.Helper()
	out := bytes.Clone(m.before)
	var directory []byte
	for _, e := range m.entries {
		local, central := e.bytes(tb, uint32(len(out)))
		out = append(out, local...)
		directory = append(directory, central...)
	}
	out = append(out, m.between...)
	start := len(out)
	out = append(out, directory...)
	if m.end64 {
		large := m.records64(len(out), start, len(directory))
		if m.large != nil {
			m.large(large)
		}
		out = append(out, large...)
	}
	end := []byte("PK\x05\x06\x00\x00\x00\x00")
	end = binary.LittleEndian.AppendUint16(end, uint16(len(m.entries)))
	end = binary.LittleEndian.AppendUint16(end, uint16(len(m.entries)))
	end = binary.LittleEndian.AppendUint32(end, uint32(len(directory)))
	end = binary.LittleEndian.AppendUint32(end, uint32(start))
	end = binary.LittleEndian.AppendUint16(end, uint16(len(m.comment)))
	if m.end != nil {
		m.end(end)
	}
	out = append(out, end...)
	out = append(out, m.comment...)
	return append(out, m.behind...)
}

func (m maker) records64(at, start, length int) []byte {
	b := []byte("PK\x06\x06")
	b = binary.LittleEndian.AppendUint64(b, 44)
	b = append(b, 45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, v := range []int{len(m.entries), len(m.entries), length, start} {
		b = binary.LittleEndian.AppendUint64(b, uint64(v))
	}
	b = append(b, "PK\x06\x07\x00\x00\x00\x00"...)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	return append(b, 1, 0, 0, 0)
}

func (e entry) bytes(tb testing.TB, offset uint32) (local, central []byte) {
	tb.Helper()
	le := binary.LittleEndian
	packed, method := e.pack(tb)
	packed = append(packed, e.tail...)
	if e.packed != nil {
		e.packed(packed)
	}
	fields := le.AppendUint16(nil, e.flags)
	fields = le.AppendUint16(fields, method)
	fields = append(fields, 0, 0, 0x21, 0)
	fields = le.AppendUint32(fields, crc32.ChecksumIEEE([]byte(e.data)))
	fields = le.AppendUint32(fields, uint32(len(packed)))
	fields = le.AppendUint32(fields, uint32(len(e.data)))
	fields = le.AppendUint16(fields, uint16(len(e.path)))

	local = append([]byte("PK\x03\x04\x14\x00"), fields...)
	local = le.AppendUint16(local, uint16(len(e.local)))
	local = append(local, e.path...)
	local = append(local, e.local...)
	if e.header != nil {
		e.header(local)
	}
	local = append(local, packed...)
	local = append(local, e.after...)

	central = append([]byte("PK\x01\x02\x14\x03\x14\x00"), fields...)
	central = le.AppendUint16(central, uint16(len(e.extra)))
	central = append(central, 0, 0, 0, 0, 0, 0)
	central = le.AppendUint32(central, e.attrs)
	central = le.AppendUint32(central, offset)
	central = append(central, e.path...)
	central = append(central, e.extra...)
	if e.central != nil {
		e.central(central)
	}
	return local, central
}

func (e entry) pack(tb testing.TB) ([]byte, uint16) {
	tb.Helper()
	if e.stored {
		return []byte(e.data), 0
	}
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, 6)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write([]byte(e.data)); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes(), 8
}

// descriptor is what follows a streamed member.
func descriptor(tb testing.TB, e entry, signature, wide bool) []byte {
	tb.Helper()
	packed, _ := e.pack(tb)
	var d []byte
	if signature {
		d = append(d, "PK\x07\x08"...)
	}
	d = binary.LittleEndian.AppendUint32(d, crc32.ChecksumIEEE([]byte(e.data)))
	for _, n := range []int{len(packed), len(e.data)} {
		if wide {
			d = binary.LittleEndian.AppendUint64(d, uint64(n))
		} else {
			d = binary.LittleEndian.AppendUint32(d, uint32(n))
		}
	}
	return d
}

// streamed is a member with a descriptor; its header says nothing.
func streamed(tb testing.TB, path, data string, signature, wide bool) entry {
	tb.Helper()
	e := entry{path: path, data: data, flags: 8, header: func(b []byte) { clear(b[14:26]) }}
	e.after = descriptor(tb, e, signature, wide)
	return e
}

// extraField is one record of extra data.
func extraField(kind uint16, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, kind)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(data)))
	return append(b, data...)
}

// wide are numbers as zip64 has them.
func wide(numbers ...uint64) []byte {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}
