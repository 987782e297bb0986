package requestparts

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/binary"
	"hash/adler32"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// TestHeadHasEveryPlace: a request with a word in each place has a part in each.
func TestHeadHasEveryPlace(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), "M", "https://me:pw@h.example/p%2Fq?a=b&base64=1&message=dGV4dA", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-A": {"b"}, "X-Bin": {"dGV4dA==, dGV4dA"}, "Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("user:password"))}}
	var all []string
	places := map[Place]bool{BodyText: true}
	for _, p := range append(Head(r), Trailer(http.Header{"X-T": {"c"}})...) {
		all = append(all, p.Where()+"="+p.Text)
		places[p.Place] = true
	}
	for _, place := range Places() {
		if !places[place] {
			t.Errorf("no part is in the place %q", place)
		}
	}
	for _, want := range []string{
		"method=M", "host=h.example", "user in the URL=me:pw", "path=/p%2Fq", "path=/p/q", "query=a=b&base64=1&message=dGV4dA", "query=text", "a header's name=X-A", "header X-A=b",
		"header X-Bin=text", "header Authorization=user", "header Authorization=password", "a trailer's name=X-T", "trailer X-T=c",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%q is not among %q", want, all)
		}
	}
}

// TestReadings: what servers may take a body for is among its readings, at whatever depth.
func TestReadings(t *testing.T) {
	const word = "the word"
	b64 := base64.StdEncoding.EncodeToString
	var raw bytes.Buffer
	deflated, err := flate.NewWriter(&raw, flate.DefaultCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(deflated, word); err != nil {
		t.Fatal(err)
	}
	if err := deflated.Close(); err != nil {
		t.Fatal(err)
	}
	in := func(kind string, more ...string) http.Header {
		h := http.Header{"Content-Type": {kind}}
		for i := 0; i < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	for name, c := range map[string]struct {
		h      http.Header
		body   string
		absent bool
		unread bool
	}{
		"as it is":                        {h: in("text/plain"), body: word},
		"nothing":                         {h: in("text/plain"), body: "another", absent: true},
		"deflate without a head":          {h: in("", "Content-Encoding", "deflate"), body: raw.String()},
		"pieces":                          {h: in(""), body: "4\r\nthe \r\n4\r\nword\r\n0\r\n\r\n"},
		"pieces, by line feeds":           {h: in(""), body: "4\nthe \n4\nword\n0\n\n"},
		"pieces, cut":                     {h: in(""), body: "4;a=b\r\nthe \r\n44\r\nword"},
		"pieces around deflate":           {h: in("", "Content-Encoding", "deflate, aws-chunked"), body: "5\r\n" + raw.String()[:5] + "\r\n" + hex(raw.Len()-5) + "\r\n" + raw.String()[5:] + "\r\n0\r\n\r\n"},
		"no pieces":                       {h: in(""), body: "4\r\nthe x\r\n4\r\nword\r\n0\r\n\r\n", absent: true},
		"a part in a part":                {h: in("multipart/mixed"), body: "Content-Transfer-Encoding: base64\r\n\r\n" + b64([]byte("Content-Transfer-Encoding: quoted-printable\r\n\r\nthe=20word"))},
		"base64 in lines":                 {h: in("multipart/mixed"), body: "Content-Transfer-Encoding: base64\r\n\r\ndGhl\r\nIHdv\r\ncmQ=\r\n--x"},
		"base64 without an end":           {h: in("message/rfc822"), body: "Content-Transfer-Encoding: base64\n\n" + strings.TrimRight(b64([]byte("a the word")), "=")},
		"all of it":                       {h: in("text/plain", "Content-Transfer-Encoding", "base64"), body: b64([]byte(word))},
		"an encoding, folded":             {h: in("multipart/mixed"), body: "Content-Transfer-Encoding:\r\n base64\r\n\r\n" + b64([]byte(word))},
		"UTF-16 behind its mark":          {h: in("application/json"), body: "\xff\xfe" + spread(word, 2, 0)},
		"UTF-16, the other":               {h: in("application/json"), body: spread(word, 2, 1)},
		"UTF-32":                          {h: in("application/json"), body: spread(word, 4, 3)},
		"UTF-7, unsaid":                   {h: in("text/plain"), body: "+AHQ-he word"},
		"UTF-7 in a part":                 {h: in("multipart/mixed"), body: "--x\r\nContent-Type: text/plain; charset=utf-7\r\n\r\nthe +AHc-ord\r\n--x--"},
		"messages":                        {h: in("application/grpc"), body: "\x00\x00\x00\x00\x04the \x00\x00\x00\x00\x04word"},
		"messages in base64":              {h: in("application/grpc-web-text+proto"), body: b64([]byte("\x00\x00\x00\x00\x04the ")) + b64([]byte("\x00\x00\x00\x00\x04word"))},
		"what is no message of Connect's": {h: in("application/vnd.connect.v1+json"), body: "{the word}"},
		"a message of Connect's":          {h: in("application/connect+json"), body: "\x00\x00\x00\x00\x08the word"},
		"a pair in UTF-16":                {h: in("text/plain"), body: "\xff\xfe\x3d\xd8\x00\xde" + spread(word, 2, 0)},
		"no base64 behind some":           {h: in("application/grpc-web-text"), body: b64([]byte("\x00\x00\x00\x00\x08the word")) + "!!!!", unread: true},
		"no base64 at all":                {h: in("application/grpc-web-text"), body: "{}", unread: true},
		"two things called deflate":       {h: in("", "Content-Encoding", "deflate"), body: bothDeflates(), unread: true},
		"br":                              {h: in("", "Content-Encoding", "br"), body: "x", unread: true},
		"a lie":                           {h: in("", "Content-Encoding", "gzip"), body: word, unread: true},
		"five codings":                    {h: in("", "Content-Encoding", "gzip,gzip,gzip,gzip,gzip"), body: "x", unread: true},
		"letters of a byte each":          {h: in("text/plain; charset=ISO-8859-2"), body: "\xe6 " + word},
		"those of another system":         {h: in("text/plain; charset=windows-1251"), body: "\xe6 " + word},
		"no letters at all":               {h: in("application/octet-stream; charset=binary"), body: word},
		"letters like those":              {h: in("text/plain; charset=cp1047"), body: word, unread: true},
		"a charset":                       {h: in("text/plain; charset=shift_jis"), body: "x", unread: true},
		"a second charset":                {h: in(`text/plain; charset=utf-8; charset="cp037"`), body: "x", unread: true},
		"too many parts":                  {h: in("multipart/mixed"), body: strings.Repeat("Content-Transfer-Encoding: quoted-printable\r\n\r\n", 2_000), unread: true},
		"an encoding that nobody knows":   {h: in("multipart/mixed"), body: "Content-Transfer-Encoding: yenc\r\n\r\nx", unread: true},
	} {
		found := false
		unread := BodyOf(c.h).Each([]byte(c.body), func(text []byte) bool {
			found = found || strings.Contains(string(text), word)
			return true
		})
		if (unread != "") != c.unread || !c.unread && found == c.absent {
			t.Errorf("%s: found %v, unread %q", name, found, unread)
		}
	}
	count := 0
	BodyOf(in("multipart/mixed")).Each([]byte("+AHQ-"), func([]byte) bool {
		count++
		return false
	})
	if count != 1 {
		t.Errorf("who wants no more gets %d", count)
	}
}

// bothDeflates is a body that is a whole stream of zlib, and with other bytes out of it one of deflate.
func bothDeflates() string {
	// Bare, the first five bytes are the head of a stored block of 0x009c bytes. As zlib's, two are the
	// stream's head, and the next five that of a stored block of 0xff63 bytes.
	const last, heads = "\x01\x00\x00\xff\xff", "\x78\x9c\x00\x63\xff\x9c\x00"
	stored := strings.Repeat("a", 0x9c-2) + last
	stored += strings.Repeat("b", 0xff63-len(stored))
	return heads + stored + last + string(binary.BigEndian.AppendUint32(nil, adler32.Checksum([]byte(stored))))
}

// spread is a text in letters of so many bytes, in one of which each is.
func spread(text string, size, at int) string {
	var out []byte
	for _, c := range []byte(text) {
		letter := make([]byte, size)
		letter[at] = c
		out = append(out, letter...)
	}
	return string(out)
}

func hex(n int) string {
	const digits = "0123456789abcdef"
	return string([]byte{digits[n/16], digits[n%16]})
}

// TestChunksOfAnySize: pieces are told apart wherever what is read of them ends.
func TestChunksOfAnySize(t *testing.T) {
	const body = "4;chunk-signature=abc\r\nthe \r\n4\r\nword\r\n0;chunk-signature=d\r\nx-amz-checksum-crc32:a\r\n\r\n"
	var c Chunks
	var out []byte
	one := iotest.OneByteReader(strings.NewReader(body))
	for {
		b := make([]byte, 8)
		n, err := one.Read(b)
		out = append(out, c.Take(b[:n], nil)...)
		if err != nil {
			break
		}
	}
	if string(out) != "the word" || c.Broken() {
		t.Errorf("%q, broken %v", out, c.Broken())
	}
	if c.Take([]byte(body), func(int) {}); c.Broken() {
		t.Error("what comes behind the last piece breaks it")
	}
	var other Chunks
	if other.Take([]byte("no pieces\r\n"), nil); !other.Broken() {
		t.Error("what has no length is taken for pieces")
	}
}

// TestHeads finds the encoding of a part wherever what is read ends.
func TestHeads(t *testing.T) {
	for body, want := range map[string]string{
		"a\r\nContent-Transfer-Encoding: base64\r\n\r\nYQ==": "base64", "Content-Transfer-Encoding:\r\n X-UUE;\r\n": "x-uue", "Content-Transfer-Encoding: 8bit\r\n": "", "a": "",
	} {
		for step := 1; step <= len(body); step++ {
			var h Heads
			got := ""
			for from := 0; from < len(body); from += step {
				if coding := h.Encoded([]byte(body[from:min(len(body), from+step)])); coding != "" {
					got = coding
				}
			}
			if got != want {
				t.Errorf("%q by %d bytes: %q, want %q", body, step, got, want)
			}
		}
	}
}
