package archive_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestTarReadTwoWays: what one reader is known to take for something else than
// another is refused. Most of these hide a member from one of them, in the
// content of another member or in the fields of its header.
func TestTarReadTwoWays(t *testing.T) {
	hidden := string(file("package/binding.gyp", "{}").bytes()) // as a file's content
	lie := func(at int, text string) []byte {
		return ended(raw{path: "a", flag: '0', data: hidden, change: put(at, text)})
	}
	for name, c := range map[string]struct {
		in   []byte
		want string
	}{
		// npm's unpacker and Rust's go by line feeds, not by lengths.
		"a line feed in a value":    {ended(pax("comment=hello\n31 path=package/binding.gyp"), file("a", "")), "control character"},
		"a line feed in a path":     {ended(pax("path=a\n17 size=0"), file("a", "")), "control character"},
		"a NUL in a value":          {ended(pax("comment=a\x00b"), file("a", "")), "control character"},
		"a line separator":          {ended(pax("comment=a\u2028b"), file("a", "")), "control character"},
		"a value that is no text":   {ended(pax("comment=\xff"), file("a", "")), "no text"},
		"a key with a blank":        {ended(pax("a 14 path=b"), file("a", "")), "control character"},
		"a key of line feeds":       {ended(pax("a\n12 path=b"), file("a", "")), "control character"},
		"a length with zeros":       {ended(raw{path: "x", flag: 'x', data: "010 path=b\n"}, file("a", "")), "malformed"},
		"a signed length":           {ended(raw{path: "x", flag: 'x', data: "+10 path=b\n"}, file("a", "")), "malformed"},
		"an x without a name":       {ended(raw{flag: 'x', data: paxData("path=b")}, file("a", "")), "without a path"},
		"an L without a name":       {ended(raw{flag: 'L', data: "b\x00"}, file("a", "")), "without a path"},
		"an x like a gzip":          {ended(raw{path: "\x1f\x8b\x08", flag: 'x', data: paxData("path=b")}, file("a", "")), "no plain text"},
		"a g like a zlib":           {ended(raw{path: "x\x9c", flag: 'g', data: paxData("comment=b")}, file("a", "")), "no plain text"},
		"an x of the oldest format": {ended(raw{path: "x", flag: 'x', magic: strings.Repeat("\x00", 8), data: paxData("path=b")}, file("a", "")), "in a format that has none"},
		"an x with a target":        {ended(raw{path: "x", link: "y", flag: 'x', data: paxData("path=b")}, file("a", "")), "is no link"},
		"a global size":             {ended(raw{path: "g", flag: 'g', data: paxData("size=0")}, file("a", hidden)), "gives all members"},
		"a global owner":            {ended(raw{path: "g", flag: 'g', data: paxData("uid=0")}, file("a", "")), "gives all members"},
		"a global target":           {ended(raw{path: "g", flag: 'g', data: paxData("linkpath=b")}, file("a", "")), "gives all members"},
		"a global later":            {ended(file("a", ""), raw{path: "g", flag: 'g', data: paxData("comment=b")}, file("b", "")), "not at its beginning"},
		"two global ones":           {ended(raw{path: "g", flag: 'g', data: paxData("comment=b")}, raw{path: "g", flag: 'g', data: paxData("comment=b")}), "not at its beginning"},
		"a global between":          {ended(pax("path=b"), raw{path: "g", flag: 'g', data: paxData("comment=b")}, file("a", "")), "not at its beginning"},

		// A header that a reader can't read is passed over, and the content of its
		// file read as headers.
		"a target of no link":      {lie(157, "b"), "is no link"},
		"pax: a target of no link": {ended(pax("linkpath=../../b"), file("a", "x")), "is no link"},
		"gnu: a target of no link": {ended(raw{path: "K", flag: 'K', magic: "ustar  \x00", data: "b\x00"}, file("a", "x")), "is no link"},
		"a link by pax alone":      {ended(pax("linkpath=b", "path=package/binding.gyp"), raw{path: "a", flag: '2'}, file("b", "")), "a link without one"},
		"a user in another base":   {lie(108, "\x81"), "is no number"},
		"a group without digits":   {lie(116, "abcdefg\x00"), "is no number"},
		"a time before all times":  {lie(136, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), "is no number"},
		"a time of 54 bits":        {lie(136, "\x80\x00\x00\x00\x00\x20"), "is no number"},
		"a time without an end":    {lie(136, "000000000001"), "is no number"},
		"a device":                 {lie(329, "\x81"), "is no number"},
		"a second device":          {lie(337, "9"), "is no number"},
		"a checksum without an end": {
			ended(raw{path: "a", flag: '0', data: hidden, sum: "%08o"}), "wrong checksum",
		},
		"an old file with a slash": {ended(pax("path=b"), raw{path: "a/", data: hidden}), "path of a folder"},

		// Text behind a text's end: some readers cut at the NUL, some up to the
		// next line feed.
		"a path that goes on":   {ended(raw{path: "package/x\x00\n/binding.gyp", flag: '0'}), "behind the end"},
		"a prefix that goes on": {ended(raw{path: "a", prefix: "p\x00\n/q", flag: '0'}), "behind the end"},
		"a target that goes on": {ended(raw{path: "a", link: "p\x00\nq", flag: '2'}), "behind the end"},
		"times in the prefix":   {ended(raw{path: "a", prefix: "p", flag: '0', change: put(476, "\x81")}), "behind the end"},
		"a name behind nothing": {ended(raw{prefix: "package", flag: '0', data: hidden}), "without a path"},
		"behind the prefix":     {lie(508, "tar\x00"), "only some programs"},

		// Paths.
		"a drive":             {ended(file("package/c:binding.gyp", "")), "drive letter"},
		"a drive's root":      {ended(file("package/c:/package.json", "")), "drive letter"},
		"a drive further in":  {ended(file("package/a/Z:b", "")), "drive letter"},
		"a drive at the top":  {ended(file("c:package/b", "")), "drive letter"},
		"a drive by pax":      {ended(pax("path=package/c:b"), file("a", "")), "drive letter"},
		"a dot at the top":    {ended(file("./package/b", "")), "not clean"},
		"a name of 256 bytes": {ended(pax("path=package/"+strings.Repeat("x", 256)), file("a", "")), "more than 255 bytes"},
		"a separator of line": {ended(file("a\u2028/etc/passwd", "")), "control character"},
	} {
		_, err := read(c.in)
		if !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}
