package egress_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// packed is a text that is encoded.
func packed(t *testing.T, coding, text string) string {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "deflate":
		w = zlib.NewWriter(&out)
	case "zstd":
		z, err := zstd.NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		w = z
	default:
		return text
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// namedGzip is what gzip makes of "a=b", with a name in its head, which a server sees that does not decode.
func namedGzip(t *testing.T, name string) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Name = name
	if _, err := io.WriteString(w, "a=b"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wholeOnly passes requests on whose bodies come whole.
type wholeOnly struct{ next http.Handler }

func (o wholeOnly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it was broken off
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	o.next.ServeHTTP(w, r)
}

// TestMethodsInBodiesOfAnyType: some servers read JSON or a form whatever a body's type is
// (express.json with type */*), and take _method in it for the method: Parse Server does, and its own
// clients send all requests as POST with JSON that is called text/plain. So where the policy rules on
// methods, no body of any type, in whichever letters and encoded in whichever way, names another. The
// controls: bodies that usual clients send arrive, also those in which such a text is quoted.
func TestMethodsInBodiesOfAnyType(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, methods: [GET, POST, PUT], paths: [\"/good\"] }\n"
	const object, form = `{"_method":"DELETE","a":"b"}`, "a=b&_method=DELETE"
	wide16, wide32 := wide(object), ""
	for _, c := range []byte(object) {
		wide32 += "\x00\x00\x00" + string(rune(c))
	}
	kinds := []string{
		"", "text/plain", "text/plain;charset=UTF-8", "text/plain; charset=ISO-8859-1", "application/octet-stream", "image/png", "application/xml", "application/x-protobuf", "application/grpc", "a", "text/plain, a",
	}
	bodies := map[string]string{
		"JSON": object, "JSON behind blanks": "\r\n\t " + strings.Repeat(" ", 9_000) + object, "JSON behind a mark": "\xef\xbb\xbf" + object, "escaped": `{"\u005fmethod":"DELETE"}`,
		"at its end": `{"a":"` + strings.Repeat("b", 70_000) + `","_Method" : "DELETE"}`, "a second object": `{"a":1}` + "\n" + object, "single quotes": `{a:'"','_method':'DELETE'}`, "no quotes": `{_method:"DELETE"}`,
		"a comment before it": "/* a */ // b\n" + object, "behind a comment": `{/* " **/"_method"/**/:"DELETE"}`, "behind a line's comment": "{// \"\n'_\\x6dethod' :'DELETE'}",
		"UTF-16": wide16, "UTF-16 behind a mark": "\xff\xfe" + wide16, "the other UTF-16": "\x00" + wide16[:len(wide16)-1], "UTF-16, with quotes in letters": wide("{\"a\":\"\u2222\u2222\u2222\",\"_method\":\"DELETE\"}"), "UTF-32": wide32,
		"form": form, "form, its first": "_method=DELETE&a=b", "form, escaped": "a=%zz;%5fm%65thod=DELETE", "form, another name": "a b=c\n&X-HTTP-Method-Override=DELETE",
	}
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		c := endLimited(t, egress.Limits{Connects: 10_000, Opens: 10_000}, rules, wholeOnly{got}, "api.example").client(t, http2)
		for what, body := range bodies {
			for _, kind := range kinds {
				for _, method := range []string{http.MethodPost, http.MethodPut} {
					if w := (worded{method: method, kind: kind, body: body}); w.sends(t, c, got) {
						t.Errorf("%s as %q: %s arrives", what, kind, method)
					}
				}
			}
		}
		for _, coding := range []string{"gzip", "deflate", "zstd"} {
			for what, body := range map[string]string{"JSON": object, "form": form} {
				if w := (worded{kind: "text/plain", body: packed(t, coding, body), header: map[string]string{"Content-Encoding": coding}}); w.sends(t, c, got) {
					t.Errorf("%s by %s arrives", what, coding)
				}
			}
		}
		for what, w := range map[string]worded{
			"a form as parts":              {kind: "multipart/form-data; boundary=x", body: form},
			"a form as JSON":               {kind: "application/json", body: form},
			"JSON as a form":               {kind: "application/x-www-form-urlencoded", body: object},
			"JSON as parts":                {kind: "multipart/form-data; boundary=x", body: object},
			"UTF-7":                        {kind: "text/plain; charset=utf-7", body: "+AHs-\"_method\":\"DELETE\"}"},
			"encoded, nobody knows":        {kind: "text/plain", body: "a", header: map[string]string{"Content-Encoding": "br"}},
			"encoded, not decoded":         {kind: "text/plain", body: object, header: map[string]string{"Content-Encoding": "snappy"}},
			"encoded twice":                {kind: "text/plain", body: packed(t, "gzip", packed(t, "gzip", object)), header: map[string]string{"Content-Encoding": "gzip, gzip"}},
			"a form in the head of gzip's": {kind: "application/x-www-form-urlencoded", body: namedGzip(t, "&_method=DELETE&"), header: map[string]string{"Content-Encoding": "gzip"}},
			"encoded, in pieces":           {kind: "text/plain", body: packed(t, "gzip", object), header: map[string]string{"Content-Encoding": "aws-chunked, gzip"}},
		} {
			if w.sends(t, c, got) {
				t.Errorf("%s arrives", what)
			}
		}
	})
}

// usualBodies are what the clients of usual services send.
func usualBodies(t *testing.T) map[string]worded {
	t.Helper()
	const quoted = `POST /a?b=c&_method=DELETE, or {\"_method\": \"DELETE\"}`
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("{\x00&;=\"_method\":\xff", 3_000)
	parts := "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n\r\n{\"_method\":\"a&_method=b\"}\r\n--x--\r\n"
	return map[string]worded{
		"a model's messages":          {kind: "application/json", body: `{"model":"m","messages":[{"role":"user","content":"` + quoted + `","_method":"a"}],"http_method":"GET"}`},
		"a chat's message":            {kind: "application/json; charset=utf-8", body: `{"channel":"C1","text":"` + quoted + `"}`},
		"a form":                      {kind: "application/x-www-form-urlencoded", body: "chat_id=1&text=" + strings.Repeat("a", 100) + "+_method%3DDELETE&method=list"},
		"an upload of parts":          {kind: "multipart/form-data; boundary=x", body: parts},
		"an upload":                   {method: http.MethodPut, kind: "application/octet-stream", body: png},
		"an image":                    {kind: "image/png", body: png},
		"bytes that begin like JSON":  {kind: "application/octet-stream", body: "{\x00\x01\x02" + strings.ReplaceAll(png, ":", ";")},
		"a text in another charset":   {kind: "text/plain; charset=ISO-8859-1", body: "caf\xe9"},
		"a text with a brace":         {kind: "text/plain", body: "{it's \"a\" // _method }"},
		"a program":                   {kind: "text/x-python", body: "_method_of = 1\n_method = {}\nif a & _method == b: pass\n"},
		"a program with comments":     {kind: "text/javascript", body: "/* sends _method: */ function f() { return { _method: /a/ } }"},
		"a table in UTF-16":           {method: http.MethodPut, kind: "text/csv; charset=utf-16", body: "\xff\xfe" + wide("a,b\n")},
		"an upload encoded otherwise": {method: http.MethodPut, kind: "text/html", body: "\x0b\x02\x80a", header: map[string]string{"Content-Encoding": "br"}},
		"a fetch of git's":            {kind: "application/x-git-upload-pack-request", body: packed(t, "gzip", "0032want 0123456789012345678901234567890123456789\n0000"), header: map[string]string{"Content-Encoding": "gzip"}},
		"telemetry":                   {kind: "application/x-protobuf", body: packed(t, "zstd", "\x0a\x04name\x7b"), header: map[string]string{"Content-Encoding": "zstd"}},
		"metrics":                     {kind: "application/x-protobuf", body: "\x0d\x30\x0a\x04name", header: map[string]string{"Content-Encoding": "snappy"}},
		"a large one, encoded":        {kind: "application/octet-stream", body: large(t), header: map[string]string{"Content-Encoding": "gzip"}},
		"pieces":                      {method: http.MethodPut, kind: "application/octet-stream", body: "4;chunk-signature=0a\r\n{\"a\"\r\n0;chunk-signature=0c\r\n\r\n", header: map[string]string{"Content-Encoding": "aws-chunked", "X-Amz-Content-Sha256": "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"}},
		"an object's names in XML":    {kind: "application/xml", body: "<Delete><Object><Key>a&amp;_method</Key></Object></Delete>"},
		"encoded messages of gRPC":    {kind: "application/grpc", body: "\x01\x00\x00\x00\x17" + packed(t, "gzip", "\x0a\x01a"), header: map[string]string{"Grpc-Encoding": "gzip"}},
		"messages of gRPC":            {kind: "application/grpc", body: "\x00\x00\x00\x00\x03\x0a\x01a"},
		"nothing":                     {kind: "text/plain", body: ""},
		"a list":                      {kind: "application/json", body: `["_method", {"_method": "a"}]`},
	}
}

// large is more than is kept of an encoded body.
func large(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, strings.Repeat("\x01\x02\x03\x04", 5<<18)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestUsualBodiesArrive: where the policy rules on methods, what usual clients send arrives.
func TestUsualBodiesArrive(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, methods: [GET, POST, PUT], paths: [\"/good\"] }\n"
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		c := endUnder(t, rules, wholeOnly{got}, "api.example").client(t, http2)
		for what, w := range usualBodies(t) {
			if !w.sends(t, c, got) {
				t.Errorf("%s does not arrive", what)
			}
		}
	})
}
