package differential

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// rounds is how many archives are made at random: few in each run of the tests,
// many with COFFERDAM_LONG=1, or as many as COFFERDAM_ROUNDS says.
func rounds(few, many int) int {
	if n, err := strconv.Atoi(os.Getenv("COFFERDAM_ROUNDS")); err == nil {
		return n
	}
	if os.Getenv("COFFERDAM_LONG") != "" {
		return many
	}
	return few
}

// dice makes archives at random. One seed gives the same archives again:
// COFFERDAM_SEED.
type dice struct{ *rand.Rand }

func roll(t *testing.T) dice {
	t.Helper()
	seed := rand.Uint64()
	if n, err := strconv.ParseUint(os.Getenv("COFFERDAM_SEED"), 10, 64); err == nil {
		seed = n
	}
	t.Logf("COFFERDAM_SEED=%d", seed)
	return dice{rand.New(rand.NewPCG(seed, 0))}
}

// in tells true one time in n.
func (d dice) in(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

// path is one of those that mean something to a client, or nearly.
func (d dice) path() string {
	if d.in(12) {
		return pick(d, "./", "/", "../", "package//", "c:", "Package/", "package/../", "package/c:", `package\`, "") + pick(d, "binding.gyp", "a", "package.json")
	}
	rest := pick(d, "binding.gyp", "package.json", "a", "b", "lib/a.js", "lib/b.js", "node_modules/x/package.json", "node_modules/x/binding.gyp",
		"node_modules/@s/x/package.json", "node_modules/x/node_modules/y/package.json", "node_modules/.x/package.json", "node_modules/@s/package.json", "node_modules/x/y/package.json",
		"node_modules/.bin/node-gyp", "npm-shrinkwrap.json", "ü", "lib/ü/é", "a:b", ".npmignore", "lib/./c", "x.", "x ", " x", "-", "~", "%2e%2e", "a*b?", `"q"`,
		strings.Repeat("d/", 60)+"e", strings.Repeat("n", 150), strings.Repeat("ü", 120), "A", "lib", "con", "aux.js", "e\u0301", "\u00e9", "\ufeffx", "\u200dx", "\u00a0", "a\ufffdb")
	return "package/" + rest
}

// content is a file's: often what could be taken for a member.
func (d dice) content() string {
	hidden := pick(d, "", "", strings.Repeat("x", 512)) + string(file(pick(d, "package/binding.gyp", "package/package.json", "package/node_modules/x/package.json"), `{"name":"foo","version":"1.0.0","scripts":{"install":"y"}}`).bytes())
	return pick(d, "", "x", hidden, hidden, hidden, strings.Repeat("x", 511), strings.Repeat("x", 512), strings.Repeat("x", 513), strings.Repeat("x", 15872+d.IntN(3)*512),
		`{"name":"x","version":"1.0.0","scripts":{"postinstall":"y"}}`, "\ufeff"+`{"scripts":{"install":"y"}}`, `{"scripts":{"install":["y"]}}`, `{"scripts":{"install":"y"},"scripts":{}}`, `{"gypfile":true}`, `{`, `{"name":"x"}`, string(make([]byte, 1024)))
}

// record is one of an extension header's, now and then with another within.
func (d dice) record() string {
	if d.in(8) {
		return pick(d, "comment=x", "uname=") + "\n" + strings.TrimSuffix(paxData(d.record()), "\n")
	}
	return pick(d, "path=", "path=", "path=", "linkpath=", "size=", "mtime=", "uid=", "comment=", "hdrcharset=", "SCHILY.dev=", "mode=", "type=", "gname=", "charset=", "GNU.sparse.name=") +
		pick(d, d.path(), d.path(), d.path(), "0", "1", "32", "512", "1.5", "-1", "1e3", "", "ISO-IR 10646 2000 UTF-8", "BINARY", "a=b", "a b", "a\nb", "a\x00b", "12 path=package/binding.gyp", "ü", "=")
}

func (d dice) extension() header {
	h := header{path: pick(d, "PaxHeader/x", "PaxHeader/x", "././@PaxHeader", "x", "x/", "package/y"), flag: pick[byte](d, 'x', 'x', 'x', 'x', 'g', 'L', 'K')}
	switch h.flag {
	case 'x', 'g':
		for range 1 + d.IntN(2) {
			h.data += paxData(d.record())
		}
		if d.in(15) {
			h.data = pick(d, "0", " ", "+") + h.data
		}
	default:
		h.magic = pick(d, gnuMagic, gnuMagic, "")
		h.data = d.path() + pick(d, "\x00", "\x00", "", "\x00x", "\x00\n")
	}
	return h
}

// member is an honest file, most of the time.
func (d dice) member() header {
	h := file(d.path(), d.content())
	if d.in(6) {
		h.flag = pick[byte](d, '1', '2', '5', '5', '5', '7', 'D', 'S', 'X', 'N', 'A', '3')
		if d.in(2) {
			h.data = ""
		}
	}
	if h.flag == '1' || h.flag == '2' || d.in(40) {
		h.link = pick(d, "package/package.json", "package.json", "a", "../a", "package/a", "../../x")
	}
	if d.in(8) {
		h.magic = pick(d, gnuMagic, oldMagic)
		h.old = h.flag == 0 && d.in(2)
	}
	if d.in(8) {
		h.prefix = pick(d, "package", "package/p", strings.Repeat("p", 155), strings.Repeat("p", 130), strings.Repeat("p", 131), ".", "")
	}
	return h
}

// oddity changes a header in one of the ways that readers differ in.
func (d dice) oddity(h *header) {
	switch d.IntN(5) {
	case 0:
		h.sum = pick(d, "%08o", "%07o\x00", "%07o ", "%06o \x00", " %06o\x00", "%6o\x00 ")
	case 1:
		n := len(h.data)
		h.size = pick(d, "00000000000\x00", fmt.Sprintf("%012o", n), fmt.Sprintf("%11o ", n), fmt.Sprintf("%o\x00", n), fmt.Sprintf("%o \x00x", n), "\x80\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00", "           \x00", fmt.Sprintf("0o%09o\x00", n))
	default:
		at := pick(d, d.IntN(512), d.IntN(100), pick(d, 99, 100, 108, 116, 124, 135, 136, 148, 155, 156, 157, 256, 257, 263, 265, 297, 329, 337, 345, 474, 475, 476, 488, 499, 500, 511))
		h.put = append(h.put, patch{at, pick(d, "\x00", " ", "\n", "\x00\n/", "0", "7", "9", "a", "/", ":", ".", `\`, "-", "\x80", "\x81", "\xff", "\xc3", "\x1f\x8b")})
	}
}

// tarball is an archive of some members behind the first ones, with at most two
// oddities.
func (d dice) tarball(tb testing.TB, headers ...header) []byte {
	tb.Helper()
	for range 1 + d.IntN(3) {
		if d.in(4) {
			headers = append(headers, d.extension())
		}
		headers = append(headers, d.member())
	}
	if d.in(10) {
		headers = append([]header{{path: "pax_global_header", flag: 'g', data: paxData(pick(d, "comment=abc", d.record(), "size="+pick(d, "0", "32", "512")))}}, headers...)
	}
	for range pick(d, 0, 1, 1, 2) {
		d.oddity(&headers[d.IntN(len(headers))])
	}
	var plain []byte
	for _, h := range headers {
		plain = append(plain, h.bytes()...)
	}
	plain = append(plain, make([]byte, pick(d, 1024, 1024, 1024, 512, 0, 10240, 700))...)
	if d.in(20) {
		plain = append(plain, file("package/late", "x").bytes()...)
	}
	return d.squeeze(tb, plain)
}

// squeeze compresses, with what may be in and behind a compressed file.
func (d dice) squeeze(tb testing.TB, plain []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if d.in(20) {
		z.Name, z.Comment, z.Extra = "x", "y", []byte("zz")
	}
	if _, err := z.Write(plain); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	switch d.IntN(40) {
	case 0:
		return append(b.Bytes(), make([]byte, 512)...)
	case 1:
		return append(b.Bytes(), packed(tb, file("package/late", "x"))...)
	}
	return b.Bytes()
}

// keep writes an archive that was read in two ways where it can be looked at.
func keep(t *testing.T, name string, data []byte) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "differential") //nolint:usetesting // it stays when the test is over
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRandomTarballs: whatever our reader accepts, the clients land as it says.
func TestRandomTarballs(t *testing.T) {
	t.Parallel()
	d, at := roll(t), &desk{dir: t.TempDir(), node: startNode(t)}
	accepted, n := 0, rounds(300, 30_000)
	for range n {
		data := d.tarball(t, manifest())
		tools := []string{"npm", "pnpm"}
		if n > 1000 && d.in(100) { // a command of half a second
			tools = append(tools, "yarn")
		}
		for _, tool := range tools {
			diff, err := at.differ(t, tool, data, ours)
			if err != nil {
				break
			}
			accepted++
			if diff != "" {
				t.Errorf("%s\n%s", diff, keep(t, "foo-1.0.0.tgz", data))
				break
			}
		}
	}
	t.Logf("%d archives, %d of them unpacked", n, accepted)
	if accepted < n/20 {
		t.Errorf("of %d archives only %d were accepted: the comparison compares nothing", n, accepted)
	}
}
