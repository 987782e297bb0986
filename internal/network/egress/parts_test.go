package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

// worded is a request in which a word stands somewhere.
type worded struct {
	method, query, kind string
	header, trailer     map[string]string
	body                string
}

// somewhere puts a word into each place of a request that a server can read, in each way in which
// it may be written there. harmless is another word of its length.
func somewhere(word string) map[string]worded {
	half := len(word) / 2
	chunks := "4;chunk-signature=0a\r\n{{{{\r\n" + hexLength(word[:half]) + ";chunk-signature=0b\r\n" + word[:half] + "\r\n" + hexLength(word[half:]) + "\r\n" + word[half:] + "\r\n0;chunk-signature=0c\r\n\r\n"
	inBase64 := base64.StdEncoding.EncodeToString([]byte(word))
	message := "\x00\x00\x00\x00" + string([]byte{byte(2 + len(word))}) + "\x0a" + string([]byte{byte(len(word))}) + word
	parts := func(coding, text string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n" + coding + "\r\n" + text + "\r\n--x--\r\n"
	}
	const multipart = "multipart/form-data; boundary=x"
	return map[string]worded{
		"method":            {method: word},
		"path":              {query: "/" + word},
		"query":             {query: "?a=" + word},
		"a query's name":    {query: "?" + word + "=a"},
		"Connect's GET":     {query: "?connect=v1&encoding=json&base64=1&message=" + base64.RawURLEncoding.EncodeToString([]byte(`{"a":"`+word+`"}`))},
		"header":            {header: map[string]string{"X-A": "a " + word}},
		"basic":             {header: map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+word))}},
		"gRPC's metadata":   {header: map[string]string{"X-A-Bin": inBase64}},
		"trailer":           {body: "{}", trailer: map[string]string{"X-A": word}},
		"trailer's name":    {body: "{}", trailer: map[string]string{word: "a"}},
		"body":              {body: word, kind: "text/plain"},
		"JSON":              {body: `{"a":"` + word + `"}`, kind: "application/json"},
		"form":              {body: "a=" + word, kind: "application/x-www-form-urlencoded"},
		"gRPC":              {body: message, kind: "application/grpc"},
		"Connect":           {body: message, kind: "application/connect+proto"},
		"gRPC for browsers": {body: base64.StdEncoding.EncodeToString([]byte(message[:7])) + base64.StdEncoding.EncodeToString([]byte(message[7:])), kind: "application/grpc-web-text"},
		"pieces":            {method: "PUT", body: chunks, header: map[string]string{"X-Amz-Content-Sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "Content-Encoding": "aws-chunked"}},
		"a part's name":     {body: strings.Replace(parts("", "a"), `"a"`, `"`+word+`"`, 1), kind: multipart},
		"a file's name":     {body: strings.Replace(parts("", "a"), `"a"`, `"a"; filename="`+word+`"`, 1), kind: multipart},
		"a part":            {body: parts("", word), kind: multipart},
		"a part in base64":  {body: parts("Content-Transfer-Encoding: base64\r\n", inBase64), kind: multipart},
		"a part, quoted":    {body: parts("Content-Transfer-Encoding: Quoted-Printable\r\n", word[:half]+"=\r\n"+word[half:]), kind: multipart},
		"a part, in pairs":  {body: parts("content-transfer-encoding:quoted-printable\r\n", word[:half]+"="+hexOf(word[half])+word[half+1:]), kind: multipart},
		"UTF-16, as said":   {body: wide(word), kind: "text/plain; charset=utf-16le"},
		"UTF-7, as said":    {body: "+" + strings.TrimRight(base64.StdEncoding.EncodeToString([]byte{0, word[0]}), "=") + "-" + word[1:], kind: "text/plain; charset=utf-7"},
	}
}

func hexLength(text string) string {
	return string("0123456789abcdef"[len(text)/16]) + string("0123456789abcdef"[len(text)%16])
}

func hexOf(c byte) string { return strings.ToUpper(hexLength(strings.Repeat("a", int(c)))) }

func wide(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		b.Write([]byte{byte(u), byte(u >> 8)})
	}
	return b.String()
}

// sends sends such a request, and tells whether it arrived whole.
func (w worded) sends(t *testing.T, c *http.Client, got *seen) bool {
	t.Helper()
	var body io.Reader
	if w.body != "" {
		body = strings.NewReader(w.body)
	}
	method := w.method
	if method == "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "https://api.example/good"+w.query, body)
	if err != nil {
		t.Fatal(err)
	}
	if w.kind != "" {
		r.Header.Set("Content-Type", w.kind)
	}
	for name, value := range w.header {
		r.Header.Set(name, value)
	}
	if w.trailer != nil {
		r.Trailer, r.ContentLength = http.Header{}, -1
		for name, value := range w.trailer {
			r.Trailer.Set(name, value)
		}
	}
	before := len(got.all())
	a, err := c.Do(r)
	if err != nil {
		return len(got.all()) > before // it may be broken off while it is sent
	}
	_, _ = io.Copy(io.Discard, a.Body)
	_ = a.Body.Close()
	return len(got.all()) > before && a.StatusCode == http.StatusOK
}

// TestEveryPartIsLookedAt: what a policy rules on is found in every part of a request, by whichever
// check, over both versions of HTTP. The controls: the same request with another word arrives.
func TestEveryPartIsLookedAt(t *testing.T) {
	const word, harmless = "glpat-" + "aB3dE6gH9kaB3dE6gH9k", "harmless-word-of-its-size-"
	const patterns = "network_allowlist:\n  - { host: api.example, paths: [\"/good\", \"/good/**\"], deny_patterns: [\"(?i)glpat-[a-z0-9]{20}\"] }\n"
	const plain = "network_allowlist:\n  - { host: api.example, paths: [\"/good\", \"/good/**\"] }\n"
	checks := map[string]func(t *testing.T, got *seen) *end{
		"deny_patterns": func(t *testing.T, got *seen) *end {
			t.Helper()
			return endUnder(t, patterns, got, "api.example")
		},
		"secret_scanning": func(t *testing.T, got *seen) *end {
			t.Helper()
			e := endUnder(t, plain, got, "api.example")
			sees, err := scanning.Exchanges{Door: &scanDoor{plan: dlp.Plan{Secrets: dlp.Block}}, Set: func() *dlp.Set { return dlp.NewSet(secrets.Rules()...) }}.
				Exchange(context.Background(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
			if err != nil {
				t.Fatal(err)
			}
			e.door.exchange = sees
			return e
		},
	}
	for check, at := range checks {
		t.Run(check, func(t *testing.T) {
			each(t, func(t *testing.T, http2 bool) {
				t.Helper()
				got := &seen{}
				c := at(t, got).client(t, http2)
				for place, w := range somewhere(word) {
					if w.sends(t, c, got) {
						t.Errorf("%s: it arrives, of all %q", place, got.all()[len(got.all())-1])
					}
				}
				for place, w := range somewhere(harmless) {
					if !w.sends(t, c, got) {
						t.Errorf("%s: a harmless one does not arrive", place)
					}
				}
			})
		})
	}
}

// TestUnreadableRequestsAreRefused where something is looked for in them: whatever a server may
// read that nobody here can.
func TestUnreadableRequestsAreRefused(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, "{}"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endUnder(t, "network_allowlist:\n  - { host: api.example, paths: [\"/good\"], deny_patterns: [\"secret\"] }\n", got, "api.example")
		c := e.client(t, http2)
		for name, w := range map[string]worded{
			"compressed":               {body: packed.String(), header: map[string]string{"Content-Encoding": "gzip"}},
			"a charset":                {body: "a", kind: "text/plain; charset=ebcdic-cp-us"},
			"a part's charset":         {body: "--x\r\nContent-Disposition: form-data; name=a\r\nContent-Type: text/plain; charset=cp037\r\n\r\na\r\n--x--\r\n", kind: "multipart/form-data; boundary=x"},
			"a part's coding":          {body: "--x\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: x-uuencode\r\n\r\na\r\n--x--\r\n", kind: "multipart/form-data; boundary=x"},
			"a compressed message":     {body: "\x01\x00\x00\x00\x01a", kind: "application/grpc"},
			"no base64":                {body: "....", kind: "application/grpc-web-text"},
			"Connect's GET compressed": {query: "?connect=v1&encoding=json&base64=1&compression=gzip&message=" + base64.RawURLEncoding.EncodeToString(packed.Bytes())},
		} {
			if w.sends(t, c, got) {
				t.Errorf("%s arrives: %q", name, got.all()[len(got.all())-1])
			}
		}
		if control := (worded{body: "{}", kind: "application/json; charset=utf-8"}); !control.sends(t, c, got) {
			t.Error("what can be read does not arrive")
		}
	})
}
