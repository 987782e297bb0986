package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
)

// raw is a tar header written by hand, so that it can lie.
type raw struct {
	path, link, magic, prefix string
	flag                      byte
	size                      string // octal as written; "" is the length of data
	data                      string
	breakSum                  bool
	change                    func(b []byte) // changes the header; the checksum comes after it
	sum                       string         // in place of the checksum
}

func (r raw) bytes() []byte {
	b := make([]byte, 512)
	copy(b, r.path)
	copy(b[100:], "0000644\x00")
	size := r.size
	if size == "" {
		size = fmt.Sprintf("%011o\x00", len(r.data))
	}
	copy(b[124:136], size)
	copy(b[148:], "        ")
	b[156] = r.flag
	copy(b[157:], r.link)
	magic := r.magic
	if magic == "" {
		magic = "ustar\x0000"
	}
	copy(b[257:], magic)
	copy(b[345:], r.prefix)
	if r.change != nil {
		r.change(b)
	}
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	if r.breakSum {
		sum++
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	if r.sum != "" {
		copy(b[148:156], fmt.Sprintf(r.sum, sum))
	}
	b = append(b, r.data...)
	return append(b, make([]byte, (512-len(r.data)%512)%512)...)
}

// ended is an archive of the headers with its end.
func ended(headers ...raw) []byte {
	var b []byte
	for _, h := range headers {
		b = append(b, h.bytes()...)
	}
	return append(b, make([]byte, 1024)...)
}

func pax(records ...string) raw { return raw{path: "pax", flag: 'x', data: paxData(records...)} }

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

func file(path, data string) raw { return raw{path: path, flag: '0', data: data} }

// read lists an archive as "path kind size".
func read(data []byte) ([]string, error) {
	var got []string
	err := archive.Tar(bytes.NewReader(data), archive.Limits{}, func(m archive.Member, content io.Reader) error {
		text, err := io.ReadAll(content)
		got = append(got, fmt.Sprintf("%s %s %q%s", m.Path, m.Mode.Type(), text, m.Link))
		return err
	})
	return got, err
}

func TestTarAccepts(t *testing.T) {
	long := strings.Repeat("d/", 60) + "file"
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"nothing":              {ended(), ""},
		"a file":               {ended(file("a/b", "x")), `a/b ---------- "x"`},
		"a folder twice":       {ended(raw{path: "a/", flag: '5'}, raw{path: "a", flag: '5'}), `a d--------- ""|a d--------- ""`},
		"a dot of its own":     {ended(raw{path: "./", flag: '5'}, file("a", "")), `a ---------- ""`},
		"npm's two times":      {ended(raw{path: "a", prefix: "p", flag: '0', change: put(476, "15270440050\x0015270440050\x00")}), `p/a ---------- ""`},
		"a long prefix":        {ended(raw{path: "a", prefix: strings.Repeat("p", 155), flag: '0'}), strings.Repeat("p", 155) + `/a ---------- ""`},
		"a large user":         {ended(raw{path: "a", flag: '0', change: put(108, "\x80\x00\x00\x00\x7f\xff\xff\xff")}), `a ---------- ""`},
		"a long name, cut":     {ended(raw{path: "L", flag: 'L', magic: "ustar  \x00", data: long + "\x00"}, file("d/", "")), long + ` ---------- ""`},
		"a wide checksum":      {ended(raw{path: "a", flag: '0', sum: "%07o\x00"}), `a ---------- ""`},
		"a prefix":             {ended(raw{path: "b", prefix: "a", flag: '0'}), `a/b ---------- ""`},
		"pax path":             {ended(pax("path="+long), file("short", "")), long + ` ---------- ""`},
		"pax size that agrees": {ended(pax("size=1"), file("a", "x")), `a ---------- "x"`},
		"pax times":            {ended(pax("mtime=1.5", "comment=x"), file("a", "")), `a ---------- ""`},
		"global comment":       {ended(raw{path: "g", flag: 'g', data: paxData("comment=abc")}, file("a", "")), `a ---------- ""`},
		"gnu long path":        {ended(raw{path: "././@LongLink", flag: 'L', magic: "ustar  \x00", data: long + "\x00"}, file("d/", "")), long + ` ---------- ""`},
		"link inside":          {ended(file("a/x", ""), raw{path: "a/b/l", flag: '2', link: "../x"}), `a/x ---------- ""|a/b/l L--------- ""../x`},
		"link to the folder":   {ended(raw{path: "a/l", flag: '2', link: "./"}), `a/l L--------- ""./`},
		"hard link":            {ended(file("a", "x"), raw{path: "b", flag: '1', link: "./a"}), `a ---------- "x"|b ---------- ""a`},
		"old format":           {ended(raw{path: "a", magic: strings.Repeat("\x00", 8)}), `a ---------- ""`},
		"zeros behind the end": {append(ended(file("a", "")), make([]byte, 10_000)...), `a ---------- ""`},
		"one block of end":     {file("a", "").with(512), `a ---------- ""`},
	} {
		got, err := read(c.in)
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// put writes over a header's bytes.
func put(at int, text string) func([]byte) { return func(b []byte) { copy(b[at:], text) } }

// with is the header with n zero bytes behind it.
func (r raw) with(n int) []byte { return append(r.bytes(), make([]byte, n)...) }

func TestTarRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		"absolute":                {ended(file("/a", "")), "absolute"},
		"leaving":                 {ended(file("a/../../b", "")), "leaves the archive"},
		"dots inside":             {ended(file("a/../b", "")), "leaves the archive"},
		"dot inside":              {ended(file("a/./b", "")), "not clean"},
		"two slashes":             {ended(file("a//b", "")), "not clean"},
		"backslash":               {ended(file(`a\b`, "")), "backslash"},
		"no path":                 {ended(file("", "")), "without a path"},
		"newline":                 {ended(file("a\nb", "")), "control character"},
		"escape":                  {ended(file("a\x1b[2J", "")), "control character"},
		"C1 control":              {ended(file("a\u0085", "")), "control character"},
		"not UTF-8":               {ended(file("a\xff", "")), "not UTF-8"},
		"long path":               {ended(pax("path="+strings.Repeat("x", 1025)), file("a", "")), "more than 1024"},
		"NUL in pax path":         {ended(pax("path=a\x00b"), file("a", "")), "control character"},
		"twice":                   {ended(file("a", ""), file("a", "x")), "twice"},
		"twice by dot":            {ended(file("a", ""), file("./a", "x")), "not clean"},
		"case":                    {ended(file("a/B", ""), file("a/b", "x")), "only in case"},
		"case of a folder":        {ended(file("A/b", ""), file("a/c", "x")), "only in case"},
		"Kelvin":                  {ended(file("k", ""), file("\u212a", "x")), "only in case"},
		"below a file":            {ended(file("a", ""), file("a/b", "")), "below a file"},
		"file over a folder":      {ended(file("a/b", ""), file("a", "")), "file where a folder"},
		"below a link":            {ended(raw{path: "a", flag: '2', link: "b"}, file("a/c", "")), "below a file"},
		"link over a folder":      {ended(file("a/b", ""), raw{path: "a", flag: '2', link: "b"}), "file where a folder"},
		"device":                  {ended(raw{path: "a", flag: '3'}), "neither"},
		"block device":            {ended(raw{path: "a", flag: '4'}), "neither"},
		"fifo":                    {ended(raw{path: "a", flag: '6'}), "neither"},
		"contiguous":              {ended(raw{path: "a", flag: '7'}), "neither"},
		"sparse":                  {ended(raw{path: "a", flag: 'S'}), "neither"},
		"unknown type":            {ended(raw{path: "a", flag: 'Z'}), "neither"},
		"absolute link":           {ended(raw{path: "a", flag: '2', link: "/etc"}), "out of the archive"},
		"climbing link":           {ended(raw{path: "a/b", flag: '2', link: "../../x"}), "out of the archive"},
		"climbing dotted link":    {ended(raw{path: "b", flag: '2', link: "./../x"}), "out of the archive"},
		"climbing to the parent":  {ended(raw{path: "b", flag: '2', link: ".."}), "out of the archive"},
		"link that climbs late":   {ended(raw{path: "a/b", flag: '2', link: "c/../../x"}), "no plain path"},
		"link to nothing":         {ended(raw{path: "a", flag: '2'}), "a link without one"},
		"link with a size":        {ended(raw{path: "a", flag: '2', link: "b", size: "00000000001\x00", data: "x"}), "has a size"},
		"hard link out":           {ended(raw{path: "a", flag: '1', link: "../b"}), "not before it"},
		"hard link to later":      {ended(raw{path: "a", flag: '1', link: "b"}, file("b", "")), "not before it"},
		"hard link to a link":     {ended(raw{path: "l", flag: '2', link: "b"}, raw{path: "a", flag: '1', link: "l"}), "not before it"},
		"folder with a size":      {ended(raw{path: "a/", flag: '5', data: "x"}), "has a size"},
		"file with a slash":       {ended(file("a/", "")), "path of a folder"},
		"negative size":           {ended(raw{path: "a", flag: '0', size: "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe"}), "no octal number"},
		"binary size":             {ended(raw{path: "a", flag: '0', size: "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01", data: "x"}), "no octal number"},
		"signed size":             {ended(raw{path: "a", flag: '0', size: "+0000000001\x00", data: "x"}), "no octal number"},
		"huge size":               {ended(raw{path: "a", flag: '0', size: "77777777777\x00"}), "was cut"},
		"pax size that differs":   {ended(pax("size=512"), raw{path: "a", flag: '0', size: "00000000000\x00", data: strings.Repeat("x", 512)}), "different sizes"},
		"pax size empty":          {ended(pax("size="), file("a", "x")), "broken path or size"},
		"pax sparse":              {ended(pax("GNU.sparse.major=1", "GNU.sparse.minor=0"), file("a", "x")), "sparse"},
		"pax twice":               {ended(pax("path=a", "path=b"), file("a", "x")), "one thing twice"},
		"pax charset":             {ended(pax("hdrcharset=BINARY"), file("a", "x")), "another encoding"},
		"pax malformed":           {ended(raw{path: "p", flag: 'x', data: "99 path=a\n"}, file("a", "")), "malformed"},
		"pax of length zero":      {ended(raw{path: "p", flag: 'x', data: "0 \n"}, file("a", "")), "malformed"},
		"two pax":                 {ended(pax("path=a"), pax("path=b"), file("a", "")), "two extension headers"},
		"pax and gnu":             {ended(pax("path=a"), raw{path: "l", flag: 'L', data: "b\x00"}, file("a", "")), "two extension headers"},
		"gnu and pax":             {ended(raw{path: "l", flag: 'L', data: "b\x00"}, pax("path=a"), file("a", "")), "two extension headers"},
		"two gnu":                 {ended(raw{path: "l", flag: 'L', data: "b\x00"}, raw{path: "l", flag: 'L', data: "c\x00"}, file("a", "")), "two extension headers"},
		"gnu with two ends":       {ended(raw{path: "l", flag: 'L', data: "b\x00c\x00"}, file("a", "")), "broken path"},
		"global path":             {ended(raw{path: "g", flag: 'g', data: paxData("path=b")}, file("a", "")), "gives all members"},
		"huge extension":          {ended(raw{path: "x", flag: 'x', size: "00040000000\x00"}), "extension header of more"},
		"extension of nothing":    {ended(pax("path=a")), "after an extension"},
		"gnu times":               {ended(raw{path: "a", flag: '0', magic: "ustar  \x00", prefix: "evil"}), "only some programs"},
		"unknown format":          {ended(raw{path: "a", flag: '0', magic: "tar\x0000000"}), "unknown format"},
		"wrong checksum":          {ended(raw{path: "a", flag: '0', breakSum: true}), "wrong checksum"},
		"data behind the end":     {append(ended(file("a", "")), file("b", "x").bytes()...), "data after its end"},
		"a member after one zero": {append(file("a", "").with(512), ended(file("b", "x"))...), "data after its end"},
		"no end":                  {file("a", "x").bytes(), "was cut"},
		"empty":                   {nil, "was cut"},
		"cut in the data":         {ended(file("a", "x"))[:512], "was cut"},
		"cut in a header":         {ended(file("a", "x"))[:100], "within a header"},
		"cut in the padding":      {ended(file("a", "x"))[:700], "was cut"},
	} {
		_, err := read(c.in)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

func zipped(tb testing.TB, data []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// bomb is head and then 100 MiB of zeros, compressed; one piece is compressed
// and repeated, since compressing all of it takes long.
func bomb(t *testing.T, head []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	flush := func(data []byte) int {
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		return b.Len()
	}
	flush(head)
	zeros := make([]byte, 1<<20)
	from := flush(zeros) // the next piece refers only to zeros before it
	to := flush(zeros)
	return append(bytes.Clone(b.Bytes()), bytes.Repeat(b.Bytes()[from:to], 98)...)
}

func readGz(data []byte, limits archive.Limits) error {
	return archive.TarGz(bytes.NewReader(data), int64(len(data)), limits, func(archive.Member, io.Reader) error { return nil })
}

func TestTarGz(t *testing.T) {
	good := zipped(t, ended(file("a", "x")))
	if err := readGz(good, archive.Limits{}); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(good)
	damaged[len(damaged)-6] ^= 1 // the checksum
	large := raw{path: "a", flag: '0', size: "00640000000\x00"}.bytes()
	for name, c := range map[string]struct {
		in     []byte
		limits archive.Limits
		want   string
	}{
		"two members":      {append(bytes.Clone(good), good...), archive.Limits{}, "after its end"},
		"trailing byte":    {append(bytes.Clone(good), 0), archive.Limits{}, "after its end"},
		"wrong checksum":   {damaged, archive.Limits{}, "damaged"},
		"cut":              {good[:len(good)-3], archive.Limits{}, "damaged"},
		"no gzip":          {ended(file("a", "x")), archive.Limits{}, "not one that gzip made"},
		"bomb":             {bomb(t, large), archive.Limits{}, "times its size"},
		"bomb behind":      {bomb(t, ended()), archive.Limits{}, "times its size"},
		"too large":        {good, archive.Limits{Unpacked: 600}, "unpacks to more than 600"},
		"too many members": {zipped(t, ended(file("a", ""), file("b", ""))), archive.Limits{Members: 1}, "more than 1 members"},
	} {
		err := readGz(c.in, c.limits)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// TestVisitErrors: what the visitor says is not the archive's fault.
func TestVisitErrors(t *testing.T) {
	mine := errors.New("mine")
	err := archive.Tar(bytes.NewReader(ended(file("a", "x"))), archive.Limits{}, func(archive.Member, io.Reader) error { return mine })
	if !errors.Is(err, mine) || errors.Is(err, fault.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// FuzzTar: what is accepted, Go's own reader reads in the same way.
func FuzzTar(f *testing.F) {
	f.Add(ended(file("a/b", "x"), raw{path: "a/l", flag: '2', link: "b"}))
	f.Add(ended(pax("path=long", "size=1"), file("a", "x")))
	f.Add(ended(raw{path: "l", flag: 'L', magic: "ustar  \x00", data: "b\x00"}, file("a", "")))
	f.Add(ended(raw{path: "g", flag: 'g', data: paxData("comment=abc")}, file("a", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		mine, err := read(data)
		if err != nil {
			return
		}
		if theirs := readAsGo(t, data); strings.Join(mine, "|") != strings.Join(theirs, "|") {
			t.Fatalf("read differently:\n%q\n%q", mine, theirs)
		}
	})
}

func readAsGo(t *testing.T, data []byte) []string {
	t.Helper()
	var got []string
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got
		}
		if err != nil {
			t.Fatalf("Go's reader refuses it: %v", err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		path := strings.TrimPrefix(strings.TrimSuffix(h.Name, "/"), "./")
		if h.Typeflag == tar.TypeXGlobalHeader || (h.Typeflag == tar.TypeDir && (path == "." || path == "")) {
			continue
		}
		kind, link := "----------", ""
		switch h.Typeflag {
		case tar.TypeDir:
			kind = "d---------"
		case tar.TypeSymlink:
			kind, link = "L---------", h.Linkname
		case tar.TypeLink:
			link = strings.TrimPrefix(h.Linkname, "./")
		}
		got = append(got, fmt.Sprintf("%s %s %q%s", path, kind, text, link))
	}
}
