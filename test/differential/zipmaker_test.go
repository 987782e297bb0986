package differential

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
)

// entry is a member of a zip written by hand, so that it can lie.
type entry struct {
	path, data   string
	local        string // the path in its own header; "" is the same
	stored       bool
	flags        uint16
	extra, inner string // of the directory, and of its own header
	attributes   uint32
	descriptor   bool
	head, listed []patch // over its own header, and over the directory's
	behind       string
}

// zipFile is a zip of entries.
type zipFile struct {
	before, between, comment, behind string
	entries                          []entry
	unlisted                         int // entries at the end that the directory leaves out
	end                              []patch
}

func (e entry) packed(tb testing.TB) (string, uint16) {
	tb.Helper()
	if e.stored {
		return e.data, 0
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
	return b.String(), 8
}

// bytes gives the member with its own header, and its entry of the directory.
func (e entry) bytes(tb testing.TB, offset int) (member, listed []byte) {
	tb.Helper()
	le := binary.LittleEndian
	data, method := e.packed(tb)
	sum := crc32.ChecksumIEEE([]byte(e.data))
	flags := e.flags
	if e.descriptor {
		flags |= 8
	}
	fields := func(blank bool, path, extra string) []byte {
		b := le.AppendUint16(nil, flags)
		b = le.AppendUint16(b, method)
		b = append(b, 0, 0, 0x21, 0)
		for _, n := range []int{int(sum), len(data), len(e.data)} {
			if blank {
				n = 0
			}
			b = le.AppendUint32(b, uint32(n))
		}
		b = le.AppendUint16(b, uint16(len(path)))
		return le.AppendUint16(b, uint16(len(extra)))
	}
	local := e.local
	if local == "" {
		local = e.path
	}
	member = append([]byte("PK\x03\x04\x14\x00"), fields(e.descriptor, local, e.inner)...)
	member = patched(append(append(member, local...), e.inner...), e.head)
	member = append(member, data...)
	if e.descriptor {
		member = le.AppendUint32(append(member, "PK\x07\x08"...), sum)
		member = le.AppendUint32(le.AppendUint32(member, uint32(len(data))), uint32(len(e.data)))
	}
	member = append(member, e.behind...)
	listed = append([]byte("PK\x01\x02\x14\x03\x14\x00"), fields(false, e.path, e.extra)...)
	listed = append(listed, 0, 0, 0, 0, 0, 0)
	listed = le.AppendUint32(listed, e.attributes)
	listed = le.AppendUint32(listed, uint32(offset))
	return member, patched(append(append(listed, e.path...), e.extra...), e.listed)
}

func patched(b []byte, patches []patch) []byte {
	for _, p := range patches {
		if p.at < len(b) {
			copy(b[p.at:], p.text)
		}
	}
	return b
}

func (z zipFile) bytes(tb testing.TB) []byte {
	tb.Helper()
	out := []byte(z.before)
	var directory []byte
	shown := len(z.entries) - z.unlisted
	for i, e := range z.entries {
		member, listed := e.bytes(tb, len(out))
		out = append(out, member...)
		if i < shown {
			directory = append(directory, listed...)
		}
	}
	out = append(out, z.between...)
	le := binary.LittleEndian
	end := le.AppendUint16([]byte("PK\x05\x06\x00\x00\x00\x00"), uint16(shown))
	end = le.AppendUint16(end, uint16(shown))
	end = le.AppendUint32(le.AppendUint32(end, uint32(len(directory))), uint32(len(out)))
	end = le.AppendUint16(end, uint16(len(z.comment)))
	out = append(append(out, directory...), patched(end, z.end)...)
	return append(append(out, z.comment...), z.behind...)
}

const info = "foo-1.0.dist-info/"

// wheelOf is a wheel of foo 1.0 with more files, and the RECORD of all.
func wheelOf(more ...entry) zipFile {
	entries := append([]entry{
		{path: info + "METADATA", data: "Metadata-Version: 2.1\nName: foo\nVersion: 1.0\n"},
		{path: info + "WHEEL", data: "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	}, more...)
	var b strings.Builder
	seen := map[string]bool{}
	for _, e := range entries {
		if strings.HasSuffix(e.path, "/") || seen[e.path] {
			continue
		}
		seen[e.path] = true
		sum := sha256.Sum256([]byte(e.data))
		path := e.path
		if strings.ContainsAny(path, `,"`) {
			path = `"` + strings.ReplaceAll(path, `"`, `""`) + `"`
		}
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.data))
	}
	fmt.Fprintf(&b, "%sRECORD,,\n", info)
	return zipFile{entries: append(entries, entry{path: info + "RECORD", data: b.String()})}
}

// extraField is one record of extra data.
func extraField(kind uint16, data string) string {
	b := binary.LittleEndian.AppendUint16(nil, kind)
	return string(binary.LittleEndian.AppendUint16(b, uint16(len(data)))) + data
}
