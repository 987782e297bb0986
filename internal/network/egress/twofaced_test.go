package egress_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
)

// whole keeps the requests that came whole, with the fields behind them.
type whole struct {
	mu       sync.Mutex // guards requests
	requests []string
}

func (h *whole) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requests = append(h.requests, fmt.Sprintf("%s %s %q %v", r.Method, r.RequestURI, body, r.Trailer))
}

// take gives those that came since the last time.
func (h *whole) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.requests
	h.requests = nil
	return all
}

// shape is a form, and the same one with a key in it by which it could be another method's.
type shape struct {
	kind      string
	bad, good []string
}

func part(disposition string) string {
	return "--B\r\nContent-Disposition: form-data; " + disposition + "\r\n\r\nDELETE\r\n--B--\r\n"
}

// manyParameters are so many of a disposition, which differ.
func manyParameters(n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "; p%d=x", i)
	}
	return all.String()
}

// shapes are the forms that servers read, each as they do not all read it.
func shapes() map[string]shape {
	multi := shape{kind: "multipart/form-data; boundary=B"}
	for _, disposition := range []string{
		`name="_method"`, `name=_method`, `name='_method'`, `name="'_method'"`, `name="_m\ethod"`, `name="_method`, `name*0="_met"; name*1="hod"`, `name*=utf-8''_method`, `name*="utf-8''%5fmethod"`,
		`name="=?utf-8?B?X21ldGhvZA==?="`, `name="text"; name="_method"`, `name="_method"; name="text"`, `NAME="_method"`, `name ="_method"`, "name=\"text\";\r\n name=\"_method\"", "\r\n\tname=\"_method\"",
		`name="_method[]"`, `name="%5fmethod"`, `filename="_method"`, `filename*=utf-8''_method`, `filename="\"; name=\"_method"; name="text"`, `name="_method\x00"`, `name="_charset_"`, `name="X-HTTP-Method-Override"`,
		`name="<_method>"`, `filename*0="_met"; filename*1="hod"`, `name=_me"thod"`, "name=\"_method\x00x\"", `name="` + strings.Repeat("x", 9_000) + `"`,
	} {
		multi.bad = append(multi.bad, part(disposition))
	}
	multi.bad = append(
		multi.bad, "--B\r\nX: y\r\nContent-Id: <_method>\r\n\r\nDELETE\r\n--B--\r\n", "--B\nContent-Disposition: form-data; name=_method\n\nDELETE\n--B--\n", "--B\r\ncontent_disposition:form-data;name=_method\r\n\r\nDELETE\r\n--B--\r\n",
		part(`name="text"`+manyParameters(17)), strings.Repeat(part(`name="text"; filename="`+strings.Repeat("x", 8_000)+`"`), 140),
		"--B\r\nContent-Disposition: name=_method\r\n\r\nDELETE\r\n--B--\r\n", "--B\r\nX: Content-Disposition: form-data; name=_method\r\n\r\nDELETE\r\n--B--\r\n",
	)
	for _, disposition := range []string{
		`name="payment_method"`, `name=text`, `name="file"; filename="a \"b\" c.html"`, `name="file"; filename*=UTF-8''caf%C3%A9`, `name="a[b]"`, "name=\"a\";\r\n filename=\"b\"", `name="text"; size=10`, `name="method"`,
		`name="caf` + "\u00e9" + `"`, `name="a%22b"`, `filename="a.txt"; name="file"`, `name="a b"`, `name=""`, `name="text"` + manyParameters(10),
	} {
		multi.good = append(multi.good, part(disposition))
	}
	multi.good = append(multi.good, "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.html\"\r\nContent-Type: text/html\r\n\r\n<input name='_method' value='DELETE'><input name=\"_method\">\r\n--B--\r\n")
	long := strings.Repeat("a", 700) + "=" + strings.Repeat("b", 70_000)
	form := shape{
		kind: "application/x-www-form-urlencoded",
		bad: []string{
			"_method=DELETE", "a=b&_method=DELETE", "a=b;_method=DELETE", "%5Fm%65thod=DELETE", long + "&_method=DELETE&" + long, strings.Repeat("+", 300) + "_method=DELETE", strings.Repeat("%20", 300) + "_method=DELETE",
			"%u005fmethod=DELETE", "_method%00x=DELETE", "%00_%00m%00e%00t%00h%00o%00d=DELETE", "_method[]=DELETE", "[method=DELETE", "a=b\n_method=DELETE", "a=b&_method", "X-HTTP-Method-Override=DELETE", "_http_method=DELETE",
			"_charset_=utf-16&a=b", "a=%zz&%%5fmethod=DELETE", "a=%&_method=DELETE",
		},
		good: []string{"method=list&payment_method=card", long, long + "_method", `{"http_status":1,"text":"_method=DELETE"}`, "a=_method", "a=b=_method=c", strings.Repeat("a", 300) + "_method=b", "_methods=b", ""},
	}
	untyped := form
	untyped.kind = ""
	json := shape{
		kind: "application/vnd.api+json",
		bad:  []string{`{"_method":"DELETE"}`, `{"a":{"b":["\\",2,"\""]}, "_meth\u006fd" : "DELETE"}`, `{"_METHOD":1}`, "{\x00\"\x00_\x00m\x00e\x00t\x00h\x00o\x00d\x00\"\x00:\x001\x00}\x00", "{\"a\":\"" + strings.Repeat("x", 70_000) + "\",\"_method\":1}"},
		good: []string{`{"text":"_method","method":"x","http_method":"GET"}`, `{"a":{"_method":1}}`, `["_method"]`, `{"a":"\"_method\":1"}`, `{"_methods":1}`, ""},
	}
	return map[string]shape{"multipart": multi, "form": form, "untyped": untyped, "json": json}
}

func zipped(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestTwoReadersOfOneForm: form x spelling of the fields that say what it is x coding. No request
// whose body a server could take for another method's comes through whole, and one of the same
// shape without that does.
func TestTwoReadersOfOneForm(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &whole{}
		e := endLimited(t, egress.Limits{Connects: 10_000, Opens: 10_000, Streams: 10_000}, judgedDocument, got, "api.example")
		send := func(header http.Header, body string) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/a", iotest.HalfReader(strings.NewReader(body)))
			if err != nil {
				t.Fatal(err)
			}
			r.Header = header
			client := e.client(t, http2)
			defer client.CloseIdleConnections()
			a, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			return a.StatusCode
		}
		check := func(what string, header http.Header, body string, want int) {
			t.Helper()
			status := send(header, body)
			if came := got.take(); status != want || (want == 200) != (len(came) == 1) {
				t.Errorf("%s: %v %.200q is answered %d, not %d; the host saw %.200q", what, header, body, status, want, came)
			}
		}
		for name, form := range shapes() {
			for _, spelling := range []string{"-", "_", "."} {
				field := "Content" + spelling + "Type"
				bad := http.StatusBadRequest
				good := http.StatusBadRequest
				if spelling == "-" {
					good = 200
				}
				header := func(more ...string) http.Header {
					h := http.Header{field: {form.kind}}
					if spelling != "-" {
						h["Content-Type"] = []string{"text/plain"}
					}
					if len(more) > 0 {
						h[more[0]] = more[1:]
					}
					return h
				}
				for _, body := range form.bad {
					check(name, header(), body, bad)
					check(name+" zipped", header("Content-Encoding", "gzip"), zipped(t, body), bad)
				}
				for _, body := range form.good {
					check(name, header(), body, good)
					check(name+" zipped", header("Content-Encoding", "x-gzip", "identity"), zipped(t, body), good)
				}
			}
			for _, header := range []http.Header{
				{"Content-Encoding": {"br"}}, {"Content-Encoding": {"deflate"}}, {"Content-Encoding": {"zstd"}}, {"Content-Encoding": {"gzip", "gzip"}}, {"Content-Encoding": {"gzip"}}, {"Grpc-Encoding": {"gzip"}},
			} {
				header["Content-Type"] = []string{form.kind}
				check(name+" encoded", header, "what is in no coding at all", http.StatusUnsupportedMediaType)
				header["Content-Type"] = []string{"application/octet-stream"}
				body, want := "what is in a coding", 200
				for _, coding := range header["Content-Encoding"] {
					if body = packed(t, coding, body); coding == "br" {
						want = http.StatusUnsupportedMediaType
					}
				}
				check("the control", header, body, want)
			}
			if form.kind != "" {
				check(name+" in another charset", http.Header{"Content-Type": {form.kind + "; charset=utf-7"}}, form.good[0], http.StatusUnsupportedMediaType)
				check("the control", http.Header{"Content-Type": {form.kind + "; charset=utf-8"}}, form.good[0], 200)
			}
		}
		for _, name := range []string{
			"Content_Encoding", "Content.Encoding", "Transfer_Encoding", "Transfer.Encoding", "Content_Length", "Content~Length", "Content_Type", "X-Content-Encoding", "Up_grade", "Grpc_Encoding", "Host_",
		} {
			check("a misspelt field", http.Header{name: {"chunked"}, "Content-Type": {"text/plain"}}, "0\r\n\r\nDELETE /admin HTTP/1.1\r\nHost: api.example\r\n\r\n", http.StatusBadRequest)
		}
		check("the control", http.Header{"Content-Type": {"text/plain"}, "Content-Language": {"en"}, "X-Content-Type-Options": {"nosniff"}}, "the _method=DELETE is no key", 200)
		check("the control", http.Header{"Content-Type": {"text/plain"}, "Content-Encoding": {"identity"}}, "the _method=DELETE is no key", 200)
	})
}

// TestOtherPlaces: no field that some server takes for the request's place comes through, in the
// header or behind the body.
func TestOtherPlaces(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &whole{}
		e := endLimited(t, egress.Limits{Connects: 10_000, Opens: 10_000, Streams: 10_000}, judgedDocument, got, "api.example")
		send := func(header, trailer http.Header) int {
			t.Helper()
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/a", iotest.HalfReader(strings.NewReader("text")))
			if err != nil {
				t.Fatal(err)
			}
			r.Header, r.Trailer = header, trailer
			client := e.client(t, http2)
			defer client.CloseIdleConnections()
			a, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, a.Body)
			_ = a.Body.Close()
			return a.StatusCode
		}
		for _, name := range []string{
			"X-Real-Path", "X-Real-Url", "X-Original-Url", "X-Original-Uri", "X-Orig-Uri", "X-Rewrite-Url", "X-Rewrite-Uri", "X-Forwarded-Path", "X-Forwarded-Uri", "X-Forwarded-Prefix", "X-Forward-Uri", "X-Base-Path",
			"X-Base-Url", "X-Script-Name", "X-Ingress-Path", "Target-Uri", "X-Target-Url", "X-Upstream-Path", "X-Invoke-Path", "X-Matched-Path", "X-Waws-Unencoded-Url", "X-Envoy-Original-Path", "X_Real_Path", "X-Request-Method",
			"X-Real-Host", "X-Proxy-Url", "X-Path-Info", "X-Http-Method-Override", "X-Method-Override",
		} {
			if status := send(http.Header{name: {"/admin"}}, nil); status != 400 {
				t.Errorf("%s is answered %d", name, status)
			}
			if status := send(http.Header{}, http.Header{name: {"/admin"}}); status != 400 {
				t.Errorf("the trailing %s is answered %d", name, status)
			}
		}
		for _, name := range []string{"Content_Type", "Content_Encoding"} {
			if status := send(http.Header{}, http.Header{name: {"x"}}); status != 400 {
				t.Errorf("the trailing %s is answered %d", name, status)
			}
		}
		if came := got.take(); len(came) > 0 {
			t.Errorf("the host saw %q", came)
		}
		for _, name := range []string{"X-Real-Ip", "X-Forwarded-For", "Origin", "Referer", "X-Amz-Target", "Soapaction", "X-Client-Path", "X-Request-Id", "X-Checksum", "Access-Control-Request-Method"} {
			if status := send(http.Header{name: {"a"}}, http.Header{"X-Checksum": {"1"}}); status != 200 {
				t.Errorf("%s is answered %d", name, status)
			}
		}
		for _, one := range got.take() {
			if !strings.Contains(one, "X-Checksum:[1]") {
				t.Errorf("the host saw %s, without the trailing field", one)
			}
		}
	})
}

// TestTrailersThatNobodyAnnounced: beside one that was, over HTTP/1.1.
func TestTrailersThatNobodyAnnounced(t *testing.T) {
	got := &whole{}
	e := endAt(t, got, "api.example")
	for trailing, want := range map[string]int{"X-Checksum: 1\r\n": 200, "X-Checksum: 1\r\nX-Real-Path: /admin\r\n": 400, "X-Checksum: 1\r\nX-HTTP-Method-Override: DELETE\r\n": 400} {
		conn := e.raw(t)
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, "POST /good/a HTTP/1.1\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\nConnection: close\r\n\r\n4\r\ntext\r\n0\r\n"+trailing+"\r\n"); err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(conn)
		if came := got.take(); !strings.HasPrefix(string(said), fmt.Sprintf("HTTP/1.1 %d ", want)) || (want == 200) != (len(came) == 1) {
			t.Errorf("%q is answered %.60q, not %d; the host saw %q", trailing, said, want, came)
		}
	}
}

// TestTrailersOfABodyThatIsReadFirst: where the body is read whole before it is sent, for patterns or
// since it is encoded, fields behind it that nobody announced are known by then, and are not sent.
func TestTrailersOfABodyThatIsReadFirst(t *testing.T) {
	got := &whole{}
	e := endAt(t, got, "api.example")
	for _, head := range []string{"/good/a HTTP/1.1\r\nContent-Type: application/json\r\nContent-Encoding: gzip", "/searched HTTP/1.1"} {
		body := "text"
		if strings.Contains(head, "gzip") {
			body = zipped(t, "{}")
		}
		for _, announced := range []string{"", "Trailer: X-Checksum\r\n"} {
			conn := e.raw(t)
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Fprintf(conn, "POST %s\r\nHost: api.example\r\nTransfer-Encoding: chunked\r\n%sConnection: close\r\n\r\n%x\r\n%s\r\n0\r\nX-Checksum: 1\r\n\r\n", head, announced, len(body), body); err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(conn)
			came := strings.Join(got.take(), "; ")
			if !strings.HasPrefix(string(said), "HTTP/1.1 200 ") || strings.Contains(came, "X-Checksum:[1]") != (announced != "") || !strings.HasPrefix(came, "POST") {
				t.Errorf("%q, %q is answered %.60q; the host saw %q", head, announced, said, came)
			}
		}
	}
}

// TestUploadsInPieces: an upload to an object store has the lengths of its pieces between them, and
// is read as it is. The controls are a key of a form in it, and a coding that nobody reads.
func TestUploadsInPieces(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &whole{}
		e := endAt(t, got, "api.example")
		for _, c := range []struct {
			coding, body string
			want         int
		}{
			{"aws-chunked", "4\r\ntext\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", http.StatusOK},
			{"aws-chunked", "12\r\na=1&_method=DELETE\r\n0\r\n\r\n", http.StatusBadRequest},
			{"br", "text", http.StatusUnsupportedMediaType},
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good/a", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Encoding", c.coding)
			client := e.client(t, http2)
			a, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			client.CloseIdleConnections()
			if a.StatusCode != c.want {
				t.Errorf("%s %q is answered %d", c.coding, c.body, a.StatusCode)
			}
		}
	})
}
