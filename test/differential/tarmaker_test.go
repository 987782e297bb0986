package differential

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"
)

// header is a member of a tar archive written by hand, so that it can lie.
type header struct {
	path, link, prefix string
	magic              string // "" is ustar's
	flag               byte   // 0 is a file's; for the old format's say old
	old                bool
	size               string // as written; "" is the length of data
	data               string
	sum                string // the format of the checksum; "" is the usual one
	put                []patch
}

// patch writes over a header's bytes, before the checksum is made.
type patch struct {
	at   int
	text string
}

const (
	gnuMagic = "ustar  \x00"
	oldMagic = "\x00\x00\x00\x00\x00\x00\x00\x00"
)

func (h header) bytes() []byte {
	b := make([]byte, 512)
	copy(b[:100], h.path)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	size := h.size
	if size == "" {
		size = fmt.Sprintf("%011o\x00", len(h.data))
	}
	copy(b[124:136], size)
	copy(b[136:], "00000000001\x00        ")
	b[156] = h.flag
	if h.flag == 0 && !h.old {
		b[156] = '0'
	}
	copy(b[157:257], h.link)
	magic := h.magic
	if magic == "" {
		magic = "ustar\x0000"
	}
	copy(b[257:], magic)
	copy(b[345:500], h.prefix)
	for _, p := range h.put {
		copy(b[p.at%512:], p.text)
	}
	copy(b[148:], "        ")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	form := h.sum
	if form == "" {
		form = "%06o\x00 "
	}
	copy(b[148:156], fmt.Sprintf(form, sum))
	b = append(b, h.data...)
	return append(b, make([]byte, (512-len(h.data)%512)%512)...)
}

func file(path, data string) header { return header{path: path, data: data} }

func pax(records ...string) header {
	return header{path: "PaxHeader/x", flag: 'x', data: paxData(records...)}
}

func paxData(records ...string) string {
	var b strings.Builder
	for _, r := range records {
		length := len(r) + 3
		for len(fmt.Sprint(length))+len(r)+2 != length {
			length++
		}
		fmt.Fprintf(&b, "%d %s\n", length, r)
	}
	return b.String()
}

// packed is the archive of the headers, with its end, compressed.
func packed(tb testing.TB, headers ...header) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, h := range headers {
		if _, err := z.Write(h.bytes()); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := z.Write(make([]byte, 1024)); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// manifest is the package.json of foo 1.0.0, which runs nothing.
func manifest() header {
	return file("package/package.json", `{"name":"foo","version":"1.0.0"}`)
}
