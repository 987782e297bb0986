package archive_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
)

// readZip lists an archive's files as `path "content"`.
func readZip(data []byte, limits archive.Limits) ([]string, error) {
	z, err := archive.Zip(bytes.NewReader(data), int64(len(data)), limits)
	if err != nil {
		return nil, err
	}
	var got []string
	err = z.Visit(func(m archive.Member, content io.Reader) error {
		text, err := io.ReadAll(content)
		got = append(got, fmt.Sprintf("%s %q", m.Path, text))
		return err
	})
	return got, err
}

func put16(at int, v uint16) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint16(b[at:], v) }
}

func put32(at int, v uint32) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) }
}

func put64(at int, v uint64) func([]byte) {
	return func(b []byte) { binary.LittleEndian.PutUint64(b[at:], v) }
}

func TestZipAccepts(t *testing.T) {
	text := strings.Repeat("some text ", 20)
	packed := len(must(t, entry{data: text}))
	for name, m := range map[string]maker{
		"deflated":                 {entries: []entry{{path: "a", data: text}}},
		"stored":                   {entries: []entry{{path: "a", data: text, stored: true}}},
		"a mode":                   {entries: []entry{{path: "a", data: text, attrs: 0o100755 << 16}}},
		"streamed":                 {entries: []entry{streamed(t, "a", text, true, false)}},
		"streamed, wide":           {entries: []entry{streamed(t, "a", text, true, true)}},
		"streamed, unsigned":       {entries: []entry{streamed(t, "a", text, false, false)}},
		"streamed, unsigned, wide": {entries: []entry{streamed(t, "a", text, false, true)}},
		"a comment":                {entries: []entry{{path: "a", data: text}}, comment: "made by hand"},
		"for large archives":       {entries: []entry{{path: "a", data: text}}, end64: true},
		"for large archives only": {entries: []entry{{path: "a", data: text}}, end64: true, end: func(b []byte) {
			put16(8, 0xffff)(b)
			put16(10, 0xffff)(b)
			put32(12, 0xffffffff)(b)
			put32(16, 0xffffffff)(b)
		}},
		"sizes in extra data": {entries: []entry{{
			path: "a", data: text, local: extraField(1, wide(uint64(len(text)), uint64(packed))...),
			header: func(b []byte) { put32(18, 0xffffffff)(b); put32(22, 0xffffffff)(b) },
		}}},
		"sizes repeated":   {entries: []entry{{path: "a", data: text, local: extraField(1, wide(uint64(len(text)), uint64(packed))...)}}},
		"the path twice":   {entries: []entry{{path: "a", data: text, extra: extraField(0x7075, 1, 0, 0, 0, 0, 'a')}}},
		"times":            {entries: []entry{{path: "a", data: text, extra: extraField(0x5455, 1), local: extraField(0x5455, 1, 2, 3, 4, 5)}}},
		"a folder":         {entries: []entry{{path: "b/", stored: true, attrs: 0o040755 << 16}, {path: "a", data: text}}},
		"a folder of none": {entries: []entry{{path: "b/c/"}, {path: "a", data: text}}},
	} {
		got, err := readZip(m.zip(t), archive.Limits{})
		if want := fmt.Sprintf("a %q", text); err != nil || !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func must(t *testing.T, e entry) []byte {
	t.Helper()
	packed, _ := e.pack(t)
	return packed
}

func TestZipOpen(t *testing.T) {
	data := maker{entries: []entry{{path: "d/"}, {path: "d/a", data: "x"}}}.zip(t)
	z, err := archive.Zip(bytes.NewReader(data), int64(len(data)), archive.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if m := z.Members(); len(m) != 2 || m[0].Path != "d" || !m[0].Mode.IsDir() || m[1].Path != "d/a" || m[1].Size != 1 {
		t.Errorf("members: %+v", m)
	}
	r, err := z.Open("d/a")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
	for _, path := range []string{"d", "d/b", ""} {
		if _, err := z.Open(path); !errors.Is(err, fault.ErrNotFound) {
			t.Errorf("%q: %v", path, err)
		}
	}
}

func TestZipRefuses(t *testing.T) {
	x := entry{path: "x", data: "content of x"}
	two := func(a, b entry) maker { return maker{entries: []entry{a, b}} }
	with := func(change func(*entry)) maker {
		e := entry{path: "y", data: "content of y"}
		change(&e)
		return two(x, e)
	}
	lie := func(at int, v uint32) maker { return with(func(e *entry) { e.header = put32(at, v) }) }
	path := func(p string) maker { return with(func(e *entry) { e.path = p }) }
	for name, c := range map[string]struct {
		maker maker
		want  string
	}{
		"bytes before":        {maker{entries: []entry{x}, before: []byte("#!/bin/sh\n")}, "belong to no member"},
		"bytes between":       {with(func(e *entry) { e.after = []byte("zz") }), "belong to no member"},
		"a hidden member":     {maker{entries: []entry{x}, between: []byte("PK\x03\x04")}, "belong to no member"},
		"bytes behind":        {maker{entries: []entry{x}, behind: []byte("z")}, "something after its end"},
		"cut":                 {maker{entries: []entry{x}, end: put16(20, 9)}, "is cut"},
		"a second end":        {maker{entries: []entry{x}, comment: "PK\x05\x06" + strings.Repeat("\x00", 18)}, "more than one end"},
		"an end in a comment": {maker{entries: []entry{x}, comment: "abc PK\x05\x06 def"}, "more than one end"},
		"several parts":       {maker{entries: []entry{x}, end: put16(4, 1)}, "part of several"},
		"fewer here":          {maker{entries: []entry{x}, end: put16(8, 0)}, "part of several"},
		"one too few":         {maker{entries: []entry{x, {path: "y"}}, end: func(b []byte) { put16(8, 1)(b); put16(10, 1)(b) }}, "not as long"},
		"one too many":        {maker{entries: []entry{x}, end: func(b []byte) { put16(8, 2)(b); put16(10, 2)(b) }}, "not as long"},
		"a shifted directory": {maker{entries: []entry{x}, end: put32(16, 1)}, "not where its end says"},
		"a longer directory":  {maker{entries: []entry{x}, end: put32(12, 1<<20)}, "not where its end says"},
		"no second end":       {maker{entries: []entry{x}, end: put32(16, 0xffffffff)}, "refers to a second one"},
		"ends that differ":    {maker{entries: []entry{x}, end64: true, large: put64(48, 1)}, "two ends disagree"},
		"counts that differ":  {maker{entries: []entry{x}, end64: true, large: put64(24, 2)}, "two ends disagree"},
		"a locator to nowhere": {
			maker{entries: []entry{x}, end64: true, large: put64(64, 1)}, "two ends disagree",
		},
		"a long second end":       {maker{entries: []entry{x}, end64: true, large: put64(4, 45)}, "two ends disagree"},
		"another path":            {with(func(e *entry) { e.header = func(b []byte) { b[30] = 'z' } }), "disagree"},
		"a longer path":           {with(func(e *entry) { e.header = put16(26, 2) }), "disagree"},
		"another method":          {with(func(e *entry) { e.header = put16(8, 0) }), "disagree"},
		"other flags":             {with(func(e *entry) { e.header = put16(6, 0x800) }), "disagree"},
		"another checksum":        {lie(14, 1), "disagree"},
		"another packed size":     {lie(18, 1), "disagree"},
		"another size":            {lie(22, 1), "disagree"},
		"no header":               {lie(0, 0), "disagree"},
		"overlapping":             {two(x, entry{path: "w", data: "abc", stored: true, central: func(b []byte) { put32(20, 9)(b); put32(24, 9)(b) }}), "overlaps"},
		"two for one":             {two(x, entry{path: "y", data: "content of y", central: put32(42, 0)}), "disagree"},
		"two for the same":        {two(x, entry{path: "y", central: put32(42, 1)}), "disagree"},
		"a descriptor's size":     {with(func(e *entry) { *e = streamed(t, "y", "text", true, false); e.after[8]++ }), "descriptor"},
		"a descriptor's checksum": {with(func(e *entry) { *e = streamed(t, "y", "text", true, false); e.after[4]++ }), "descriptor"},
		"a descriptor's sign":     {with(func(e *entry) { *e = streamed(t, "y", "text", true, false); e.after[0]++ }), "descriptor"},
		"a short descriptor":      {with(func(e *entry) { *e = streamed(t, "y", "text", true, false); e.after = e.after[:13] }), "descriptor"},
		"a long descriptor":       {with(func(e *entry) { *e = streamed(t, "y", "text", true, true); e.after = append(e.after, 0) }), "belong to no member"},
		"no descriptor":           {with(func(e *entry) { *e = streamed(t, "y", "text", true, false); e.after = nil }), "descriptor"},
		"half a header": {with(func(e *entry) {
			*e = streamed(t, "y", "text", true, false)
			e.header = func(b []byte) { clear(b[14:26]); b[14] = 1 }
		}), "disagree"},
		"stored and streamed": {with(func(e *entry) {
			e.stored, e.flags = true, 8
			e.after = []byte("PK\x07\x08")
		}), "can't be known"},
		"encrypted":            {with(func(e *entry) { e.flags = 1 }), "encrypted"},
		"strongly encrypted":   {with(func(e *entry) { e.flags = 0x41 }), "encrypted"},
		"masked":               {with(func(e *entry) { e.flags = 0x2000 }), "encrypted"},
		"patched":              {with(func(e *entry) { e.flags = 0x20 }), "flags that are not understood"},
		"unknown method":       {with(func(e *entry) { e.central = put16(10, 14) }), "other than deflate"},
		"stored, two sizes":    {with(func(e *entry) { e.stored = true; e.central = put32(24, 1) }), "two sizes"},
		"another disk":         {with(func(e *entry) { e.central = put16(34, 1) }), "part of several"},
		"no entry":             {with(func(e *entry) { e.central = put16(0, 0) }), "something else where its entry 2"},
		"sizes twice":          {with(func(e *entry) { e.extra = slices.Concat(extraField(1), extraField(1)) }), "twice"},
		"sizes nobody asked":   {with(func(e *entry) { e.extra = extraField(1, wide(1)...) }), "two sizes"},
		"sizes repeated wrong": {with(func(e *entry) { e.local = extraField(1, wide(1, 2)...) }), "two sizes"},
		"sizes missing":        {with(func(e *entry) { e.central = put32(24, 0xffffffff) }), "two sizes"},
		"huge sizes": {with(func(e *entry) {
			e.extra, e.central = extraField(1, wide(1<<63)...), put32(24, 0xffffffff)
		}), "two sizes"},
		"broken extra data":   {with(func(e *entry) { e.extra = []byte{1} }), "malformed"},
		"cut extra data":      {with(func(e *entry) { e.extra = []byte{1, 0, 9, 0} }), "malformed"},
		"broken local extra":  {with(func(e *entry) { e.local = []byte{1, 0, 9, 0} }), "malformed"},
		"two paths":           {with(func(e *entry) { e.extra = extraField(0x7075, 1, 0, 0, 0, 0, 'z') }), "two paths"},
		"two paths, local":    {with(func(e *entry) { e.local = extraField(0x7075, 1, 0, 0, 0, 0, 'z') }), "two paths"},
		"twice":               {two(x, x), "twice"},
		"case":                {path("X"), "only in case"},
		"below a file":        {path("x/y"), "below a file"},
		"leaving":             {path("../y"), "leaves the archive"},
		"absolute":            {path("/y"), "absolute"},
		"not clean":           {path("./y"), "not clean"},
		"two slashes":         {path("a//y"), "not clean"},
		"folder of two":       {with(func(e *entry) { e.path, e.data = "a//", "" }), "not clean"},
		"root":                {with(func(e *entry) { e.path, e.data = "/", "" }), "no path"},
		"empty":               {path(""), "no path"},
		"backslash":           {path(`a\y`), "backslash"},
		"NUL":                 {path("y\x00.py"), "control character"},
		"unflagged UTF-8":     {path("é"), "unknown encoding"},
		"not UTF-8":           {with(func(e *entry) { e.path, e.flags = "\xff", 0x800 }), "not UTF-8"},
		"link":                {with(func(e *entry) { e.attrs = 0o120777 << 16 }), "neither a file nor a folder"},
		"device":              {with(func(e *entry) { e.attrs = 0o020777 << 16 }), "neither a file nor a folder"},
		"folder as a file":    {with(func(e *entry) { e.attrs = 0o040777 << 16 }), "with the path of a file"},
		"file as a folder":    {with(func(e *entry) { e.path, e.attrs = "y/", 0o100777<<16 }), "with the path of a folder"},
		"folder with content": {path("y/"), "folder with content"},
		"wrong checksum": {with(func(e *entry) {
			e.header, e.central = put32(14, 7), put32(16, 7)
		}), "checksum"},
		"smaller":          {with(func(e *entry) { e.header, e.central = put32(22, 99), put32(24, 99) }), "smaller"},
		"larger":           {with(func(e *entry) { e.header, e.central = put32(22, 2), put32(24, 2) }), "larger"},
		"data behind data": {with(func(e *entry) { e.tail = []byte("zz") }), "after its compressed data"},
		"damaged":          {with(func(e *entry) { e.packed = func(b []byte) { b[0] = 0xff } }), "damaged"},
	} {
		_, err := readZip(c.maker.zip(t), archive.Limits{})
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func TestZipLimits(t *testing.T) {
	many := maker{entries: []entry{{path: "a"}, {path: "b"}}}.zip(t)
	size := func(at int) func([]byte) { return put32(at, 65<<20) } // nobody reads so far
	bomb := maker{entries: []entry{{path: "a", header: size(22), central: size(24)}}}.zip(t)
	for name, c := range map[string]struct {
		in     []byte
		limits archive.Limits
		want   string
	}{
		"members":  {many, archive.Limits{Members: 1}, "more than 1 members"},
		"path":     {maker{entries: []entry{{path: "abc"}}}.zip(t), archive.Limits{Path: 2}, "more than 2 bytes"},
		"ratio":    {bomb, archive.Limits{}, "times its size"},
		"unpacked": {bomb, archive.Limits{Unpacked: 1 << 20}, "more than 1048576 bytes"},
		"no file":  {nil, archive.Limits{}, "not a zip archive"},
	} {
		_, err := readZip(c.in, c.limits)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// FuzzZip: what is accepted, Go's own reader reads in the same way.
func FuzzZip(f *testing.F) {
	f.Add(maker{entries: []entry{{path: "a/b", data: "text"}, {path: "a/", stored: true}}}.zip(f))
	f.Add(maker{entries: []entry{streamed(f, "a", "text", true, false), {path: "b", data: "x", stored: true}}, end64: true}.zip(f))
	f.Add(maker{entries: []entry{streamed(f, "a", "text", false, true)}, comment: "c"}.zip(f))
	f.Add(maker{entries: []entry{{path: "a", data: "t", extra: extraField(0x5455, 1), local: extraField(1, wide(1, 3)...)}}}.zip(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, err := readZip(data, archive.Limits{})
		if err != nil {
			return
		}
		if theirs := readAsGoZip(t, data); !slices.Equal(mine, theirs) {
			t.Fatalf("read differently:\n%q\n%q", mine, theirs)
		}
	})
}

func readAsGoZip(t *testing.T, data []byte) []string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatalf("Go's reader refuses it: %v", err)
	}
	var got []string
	for _, f := range r.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(content)
		if err != nil && f.Flags&8 == 0 { // Go's reader knows only signed descriptors of 32 bits
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %q", f.Name, text))
	}
	return got
}
