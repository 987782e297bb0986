package exchange

import (
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestFramingFindsEnds of messages however they come.
func TestFramingFindsEnds(t *testing.T) {
	for kind, c := range map[string]struct {
		says string
		ends []int
	}{
		"text/event-stream":                  {"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: YWJjZGVm\n \r\nZGVm\n\ndata: 0123456789a.\n\ndata: d\n", []int{9, 20, 29, 73}},
		"application/x-ndjson":               {"{}\n{}\r\n12\n{", []int{3, 7}},
		"application/grpc":                   {envelope("abc", true) + envelope("", true) + envelope("d", false), []int{8, 13}},
		"application/vnd.amazon.eventstream": {awsMessage("ab") + awsMessage("") + awsMessage("c")[:9], []int{18, 34}},
		"application/connect+json":           {envelope("{}", true) + "\x00", []int{7}},
	} {
		f, ends := framingOf(answerOf(http.MethodPost, kind, kind)), []int(nil)
		for at := range c.says {
			if end := f.take([]byte(c.says[at : at+1])); end >= 0 {
				ends = append(ends, at+end)
			}
		}
		// Of CR LF CR LF the CR ends the message, and so does the LF that belongs to it.
		if kind == "text/event-stream" {
			ends = slices.DeleteFunc(ends, func(end int) bool { return end == 19 })
		}
		if !slices.Equal(ends, c.ends) {
			t.Errorf("%s: ends at %v, not %v", kind, ends, c.ends)
		}
		if end := framingOf(answerOf(http.MethodPost, kind, kind)).take([]byte(c.says)); end != c.ends[len(c.ends)-1] {
			t.Errorf("%s: the last end is %d", kind, end)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/json", "application/grpc-web-text", "text/event-stream, text/plain"} {
		if f := framingOf(answerOf(http.MethodPost, kind, kind)); f != nil {
			t.Errorf("%q has ends: %T", kind, f)
		}
	}
}

// answerOf is an answer of a type to a request of one.
func answerOf(method, kind, asked string) *http.Response {
	return &http.Response{Header: http.Header{"Content-Type": {kind}}, Request: &http.Request{Method: method, Header: http.Header{"Content-Type": {asked}}}}
}

// awsMessage is one of AWS's event streams without headers.
func awsMessage(payload string) string {
	b := binary.BigEndian.AppendUint32(nil, uint32(16+len(payload)))
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	b = append(b, payload...)
	return string(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// TestAMessageThatEndsWithinASecret: somebody inside has a host call an answer what has messages, begin with a length that
// ends within the secret, and come in two reads of which the first ends there. No letter of it arrives, and what comes is as
// it is where the answer is called a text, which is the control.
func TestAMessageThatEndsWithinASecret(t *testing.T) {
	secret := guessed + "/0123456789abcdefghij"
	aws := func(n int) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(8+n))) + "\x00\x00\x00\x00"
	}
	grpc := func(n int) string { return string(binary.BigEndian.AppendUint32([]byte{0}, uint32(n))) }
	plain := func(s string) string { return s }
	for name, c := range map[string]struct {
		method, kind, asked string
		head                func(n int) string
		write               func(string) string
	}{
		"the control":              {http.MethodGet, "text/plain", "", grpc, plain},
		"gRPC of a store":          {http.MethodGet, "application/grpc", "application/grpc", grpc, plain},
		"gRPC that was not asked":  {http.MethodPost, "application/grpc+proto", "application/json", grpc, plain},
		"gRPC-Web":                 {http.MethodGet, "application/grpc-web+proto", "", grpc, plain},
		"Connect, asked for other": {http.MethodPost, "application/connect+json", "application/grpc", grpc, plain},
		"no head of gRPC":          {http.MethodPost, "application/grpc", "application/grpc", func(n int) string { return "\x04" + grpc(n)[1:] }, plain},
		"AWS's events":             {http.MethodPost, "application/vnd.amazon.eventstream", "application/json", aws, plain},
		"events, double-spaced":    {http.MethodGet, "text/event-stream", "", func(int) string { return "data: a\n\ndata: " }, func(s string) string { return strings.ReplaceAll(inLines(encode(s), 16), "\n", "\n\n") }},
		"events, CR CR LF": {http.MethodGet, "text/event-stream", "", func(int) string { return ": " }, func(s string) string {
			return strings.ReplaceAll(inLines(hex.EncodeToString([]byte(s)), 20), "\n", "\r\r\n")
		}},
		"lines":      {http.MethodPost, "application/x-ndjson", "", func(int) string { return "" }, func(s string) string { return inLines(encode(s), 16) }},
		"soft lines": {http.MethodPost, "application/x-ndjson", "", func(int) string { return "" }, func(s string) string { return strings.ReplaceAll(inLines(s, 10), "\n", "=\n") }},
	} {
		written := c.write(secret)
		for at := range len(written) {
			text := c.head(len("auth=")+at) + "auth=" + written + " end"
			want := seek(secret).masked(text)
			if !strings.Contains(want, "xxxxxxxxxx") {
				t.Fatal(want)
			}
			cut := strings.Index(text, written) + at
			a := answerOf(c.method, c.kind, c.asked)
			s := scan{needles: seek(secret), tail: tail{framing: framingOf(a)}}
			if got, _ := inCuts(&s, text, cut); got != want {
				t.Errorf("%s, at %d: %q", name, at, got)
			}
		}
	}
}

// TestAMessageThatEndsWithinASecretInAnyWriting: as above, where somebody inside has the letters of the secret's base64
// written in any way that is read, on lines, and a form of messages whose ends are lines'. Fewer letters than the shortest
// text that is looked for takes pass at most; here each line has more.
func TestAMessageThatEndsWithinASecretInAnyWriting(t *testing.T) {
	const secret = guessed + "/0123456789abcdefghij"
	lines := strings.Split(inLines(encode(secret), 16), "\n")
	ways := writings()
	ways["unseen behind each"], ways["unseen by name behind each"] = eachLetter("%c\u200b"), eachLetter("%c&shy;")
	for name, write := range ways {
		for form, end := range map[string]string{"text/event-stream": "\n\n", "application/x-ndjson": "\n", "application/json-seq": "\n"} {
			var all []string
			for _, line := range lines {
				all = append(all, write(line))
			}
			written := strings.Join(all, end)
			text := "data: auth=" + written + " end"
			want := seek(secret).masked(text)
			if want == text {
				continue // it is not read over lines
			}
			for at := range len(written) + 1 {
				s := scan{needles: seek(secret), tail: tail{framing: framingOf(answerOf(http.MethodGet, form, ""))}}
				if got, _ := inCuts(&s, text, strings.Index(text, written)+at); got != want {
					t.Errorf("%s, %s, at %d: %q, not %q", form, name, at, got, want)
					break
				}
			}
		}
	}
}

// inCuts is what comes of a text in two pieces, and what is found in them.
func inCuts(s *scan, text string, cuts ...int) (out, of string) {
	from := 0
	for _, at := range append(cuts, len(text)) {
		part, hit := s.takeMore([]byte(text[from:at]), false)
		out, of, from = out+string(part), of+hit, at
	}
	part, hit := s.takeMore(nil, true)
	return out + string(part), of + hit
}
