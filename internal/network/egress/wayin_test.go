package egress_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/exchange"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/credentials"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
)

// The secret of the table, and a text that is like it and none.
const (
	theSecret   = `sk-canary+A/b=C"9<z>&é-0123456789`
	theHarmless = `sk-public+A/b=C"9<z>&é-0123456789`
	theFake     = "sk-fake-AAAAAAAAAAAAAAAAAAAAAAAA"
)

// secretDoor gives api.example a secret in a place. Of a run that has not used it yet it is
// among the others.
type secretDoor struct {
	door.Door
	where []exchange.Place
}

func (d secretDoor) Credentials(context.Context, door.CredentialsAsk) (door.CredentialsAnswer, error) {
	return door.CredentialsAnswer{
		Placeholders: map[string]string{"bot": theFake}, Seek: true,
		Credentials: []exchange.Credential{{Secret: "bot", Placeholder: theFake, Manner: exchange.Manner{Where: d.where}}},
	}, nil
}

func (d secretDoor) Secrets(_ context.Context, ask door.SecretsAsk) (door.SecretsAnswer, error) {
	if len(ask.Uses) > 0 {
		return door.SecretsAnswer{Values: map[string]string{"bot": theSecret}}, nil
	}
	return door.SecretsAnswer{Others: map[string][]string{"bot": {"an-older-value", theSecret}}}, nil
}

func (secretDoor) Leaked(context.Context, door.LeakAsk) (door.Answer, error) {
	return door.Answer{Decision: policy.Decision{Effect: policy.Deny, Reason: "it does not go there"}, RequestID: "R1"}, nil
}

func (secretDoor) Declined(context.Context, door.DeclinedAsk) error { return nil }

func sees(t *testing.T, where ...exchange.Place) requests.Exchange {
	t.Helper()
	x, err := credentials.Exchanges{Door: secretDoor{where: where}}.Exchange(t.Context(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// forms are the ways in which hosts write a text. None of them has a line's end unless it
// begins with "lines".
func forms() map[string]func(string) string {
	each := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, c := range []byte(s) {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	runes := func(format string) func(string) string {
		return func(s string) string {
			var b strings.Builder
			for _, c := range s {
				fmt.Fprintf(&b, format, c)
			}
			return b.String()
		}
	}
	quoted := func(s string) string {
		b, err := json.Marshal(s)
		if err != nil {
			return err.Error()
		}
		return string(b[1 : len(b)-1])
	}
	std, lines := base64.StdEncoding.EncodeToString, func(s string, end string) string {
		var b strings.Builder
		for len(s) > 7 {
			b.WriteString(s[:7] + end)
			s = s[7:]
		}
		return b.String() + s
	}
	all := map[string]func(string) string{
		"raw": func(s string) string { return s }, "JSON": quoted, "JSON in JSON": func(s string) string { return quoted(quoted(s)) },
		"JSON, some": func(s string) string {
			return strings.NewReplacer("+", `\u002B`, "=", `\u003d`, "/", `\/`, `"`, `\u0022`).Replace(s)
		},
		"JSON, all": runes(`\u%04x`), "JSON, capitals": runes(`\u%04X`), "hexadecimal escapes": func(s string) string { return strings.ReplaceAll(each(`\x%02x`)(s), `\xc3\xa9`, `\xe9`) },
		"octal": each(`\%03o`), "query": url.QueryEscape, "path": url.PathEscape, "percent": each("%%%02x"), "percent, capitals": each("%%%02X"), "percent twice": func(s string) string { return url.QueryEscape(each("%%%02x")(s)) },
		"HTML": html.EscapeString, "HTML, named": strings.NewReplacer("&", "&amp;", "+", "&plus;", "/", "&sol;", "=", "&equals;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "é", "&eacute;").Replace,
		"HTML, mustache": strings.NewReplacer("&", "&amp;", "/", "&#x2F;", "=", "&#x3D;", "`", "&#x60;", `"`, "&quot;", "<", "&lt;", ">", "&gt;").Replace,
		"HTML, decimal":  runes("&#%d;"), "HTML, no semicolon": strings.NewReplacer("+", "&#43", "=", "&#61", `"`, "&quot", "<", "&lt").Replace, "HTML twice": func(s string) string { return html.EscapeString(html.EscapeString(s)) },
		"base64 in a URL": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }, "base64 twice": func(s string) string { return std([]byte(std([]byte("me:" + s)))) },
		"base64 of JSON": func(s string) string { return std([]byte(`{"k":"` + quoted(s) + `"}`)) }, "base64, escaped": func(s string) string { return url.QueryEscape(strings.ReplaceAll(std([]byte("x"+s)), "/", `\/`)) },
		"hexadecimal": func(s string) string { return hex.EncodeToString([]byte(s)) }, "hexadecimal, capitals": func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
		"hexadecimal, odd": func(s string) string { return "0x" + hex.EncodeToString([]byte(s)) }, "hexadecimal of base64": func(s string) string { return hex.EncodeToString([]byte(std([]byte(s)))) },
		"base64, lines in JSON": func(s string) string { return lines(std([]byte(s)), `\n`) },
		"lines of base64":       func(s string) string { return lines(std([]byte(s)), "\n") }, "lines of base64, indented": func(s string) string { return lines(std([]byte("a"+s)), "\r\n    ") },
		"lines of hexadecimal": func(s string) string { return lines(hex.EncodeToString([]byte(s)), "\n") },
	}
	for before := range 3 {
		all[fmt.Sprint("base64 at ", before)] = func(s string) string { return std([]byte(strings.Repeat("a", before) + s + "zzzz")) }
	}
	return all
}

// way is one by which something of a host's comes in.
type way struct {
	answer func(w http.ResponseWriter, r *http.Request, text string)
	http1  bool // has it alone
	lines  bool // a text with line ends can come so
	socket bool
}

func ways() map[string]way {
	header := func(name string) way {
		return way{answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			w.Header()[name] = []string{"a=" + text + ";"}
		}}
	}
	hijacked := func(write func(text string) string) way {
		return way{http1: true, answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, write(text))
		}}
	}
	socket := func(write func(text string) []byte) way {
		w := hijacked(func(text string) string {
			return "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" + string(write(text))
		})
		w.socket, w.lines = true, true
		return w
	}
	return map[string]way{
		"body": {lines: true, answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			_, _ = io.WriteString(w, "before "+text+" after")
		}},
		"error": {lines: true, answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			http.Error(w, "failed: "+text, http.StatusInternalServerError)
		}},
		"bytes": {lines: true, answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			for i := range len(text) {
				_, _ = io.WriteString(w, text[i:i+1])
				_ = http.NewResponseController(w).Flush()
			}
		}},
		"a long body": {lines: true, answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			_, _ = io.WriteString(w, strings.Repeat("words of a model ", 600)+text+strings.Repeat(" and more", 600))
		}},
		"events": {answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			w.Header().Set("Content-Type", "text/event-stream")
			for _, s := range []string{"hello", text, "bye"} {
				fmt.Fprintf(w, "data: {\"delta\":\"%s\"}\n\n", s)
				_ = http.NewResponseController(w).Flush()
			}
		}},
		"gRPC": {lines: true, answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(text))), text...))
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", "0")
		}},
		"gRPC's trailer": {answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = io.WriteString(w, "\x00\x00\x00\x00\x00")
			_ = http.NewResponseController(w).Flush()
			w.Header()[http.TrailerPrefix+"Grpc-Message"] = []string{text}
		}},
		"announced trailer": {answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			w.Header().Set("Trailer", "X-End")
			_, _ = io.WriteString(w, "said")
			w.Header()["X-End"] = []string{text}
		}},
		"header": header("X-Echo"), "cookie": header("Set-Cookie"), "location": header("Location"), "content type": header("Content-Disposition"),
		"early hints": {answer: func(w http.ResponseWriter, _ *http.Request, text string) {
			w.Header()["Link"] = []string{text}
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
		}},
		"message": socket(func(text string) []byte { return serverFrame(0x81, text) }),
		"fragments": socket(func(text string) []byte {
			half := len(text) / 2
			return slices.Concat(serverFrame(0x01, text[:half]), serverFrame(0x89, "ping"), serverFrame(0x00, text[half:half+3]), serverFrame(0x80, text[half+3:]))
		}),
		"bytes in frames": socket(func(text string) []byte {
			all := serverFrame(0x02, "")
			for i := range len(text) {
				all = append(all, serverFrame(0x00, text[i:i+1])...)
			}
			return append(all, serverFrame(0x80, "")...)
		}),
		"ping": socket(func(text string) []byte {
			if len(text) > 125 {
				return serverFrame(0x81, text)
			}
			return serverFrame(0x89, text)
		}),
	}
}

func serverFrame(first byte, text string) []byte {
	switch n := len(text); {
	case n < 126:
		return append([]byte{first, byte(n)}, text...)
	default:
		return append(binary.BigEndian.AppendUint16([]byte{first, 126}, uint16(n)), text...)
	}
}

// unframed is what a server's frames carry.
func unframed(b []byte) string {
	var data, control strings.Builder
	for len(b) >= 2 {
		n, head := int(b[1]), 2
		if n == 126 {
			n, head = int(binary.BigEndian.Uint16(b[2:])), 4
		}
		into := &data
		if b[0]&0x08 != 0 {
			into = &control
		}
		into.Write(b[head : head+n])
		b = b[head+n:]
	}
	return data.String() + control.String()
}

// cell asks the host for a text by a way and in a form, and gives all that came in, as one.
func (e *end) cell(t *testing.T, c *http.Client, w way, query url.Values) string {
	t.Helper()
	ctx, early := t.Context(), ""
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		early += fmt.Sprint(h["Link"])
		return nil
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example/good/a?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if w.socket {
		return e.socket(t, r)
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{early, a.Status, string(body)}
	for _, h := range []http.Header{a.Header, a.Trailer} {
		for name, values := range h {
			if name != "Date" {
				all = append(all, name+": "+strings.Join(values, "\n"))
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// socket reads what a WebSocket brings until its end.
func (e *end) socket(t *testing.T, r *http.Request) string {
	t.Helper()
	conn := e.raw(t)
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n", r.URL.RequestURI()); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	a, err := http.ReadResponse(answers, nil)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%+v %v", a, err)
	}
	frames, _ := io.ReadAll(answers) // its end is the connection's
	return unframed(frames)
}

// TestEveryWayIn: a host gives the secret of a request back, in each form by each way over
// each protocol, and it does not arrive; neither does it if the run has not used it. A text
// that is like it arrives as it is; and so does the secret where nothing looks for it.
func TestEveryWayIn(t *testing.T) {
	all, written := ways(), forms()
	host := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		all[q.Get("way")].answer(w, r, written[q.Get("form")](map[string]string{"secret": theSecret, "harmless": theHarmless}[q.Get("text")]))
	})
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		many := egress.Limits{Connects: 10_000, Opens: 10_000}
		guarded, open := endLimited(t, many, judgedDocument, host, "api.example"), endLimited(t, many, judgedDocument, host, "api.example")
		guarded.door.exchange = sees(t, exchange.Header)
		to, around := guarded.client(t, http2), open.client(t, http2)
		cells := 0
		for wayName, w := range all {
			for form := range written {
				if w.http1 && http2 || !w.lines && strings.HasPrefix(form, "lines") {
					continue
				}
				cells++
				query := func(text string) url.Values {
					return url.Values{"way": {wayName}, "form": {form}, "text": {text}}
				}
				bare := open.cell(t, around, w, query("secret"))
				if !strings.Contains(bare, written[form](theSecret)) {
					t.Errorf("%s, %s: without a guard came %q", wayName, form, bare)
				}
				harmless := guarded.cell(t, to, w, query("harmless"))
				if harmless != open.cell(t, around, w, query("harmless")) || !strings.Contains(harmless, written[form](theHarmless)) {
					t.Errorf("%s, %s: what is harmless came as %q", wayName, form, harmless)
				}
				masked := guarded.cell(t, to, w, query("secret"))
				if left := common(masked, written[form](theSecret)); left >= len(written[form](theSecret))-len(written[form](theSecret))/3 || len(masked) != len(bare) {
					t.Errorf("%s, %s: %d letters in a row came: %q of %q", wayName, form, left, masked, bare)
				}
			}
		}
		t.Logf("%d cells", cells)
	})
}

// common is the length of the longest part of a text that another one has.
func common(in, text string) int {
	longest := 0
	for i := range len(text) {
		for i+longest < len(text) && strings.Contains(in, text[i:i+longest+1]) {
			longest++
		}
	}
	return longest
}

// TestASecretInThePathIsToldNobody: whatever keeps a request from an answer after the secret
// was put in, what is told of it has the placeholder. The control: the host got the secret.
func TestASecretInThePathIsToldNobody(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		t.Parallel() // it waits for what settles an answer that has no end
		for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
			"an answer that is encoded": func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Encoding", "gzip")
			},
			"no answer":             func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			"an answer, and no end": func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) },
			"another protocol": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Grpc-Encoding", "gzip")
			},
		} {
			reached := make(chan string, 10)
			e := endUnder(t, "network_allowlist:\n  - { host: api.example, methods: [POST], paths: ['/**'], max_body: 16 }\n", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				reached <- r.URL.Path + r.Header.Get("X-Key")
				answer(w, r)
			}), "api.example")
			e.door.exchange = sees(t, exchange.Path, exchange.Header)
			for _, body := range []string{"short", strings.Repeat("long", 100)} {
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/bot"+theFake+"/send", io.MultiReader(strings.NewReader(body)))
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("X-Key", theFake)
				said := ""
				if a, err := e.client(t, http2).Do(r); err != nil {
					said = err.Error()
				} else {
					b, _ := io.ReadAll(a.Body)
					said = a.Status + fmt.Sprint(a.Header) + string(b)
					_ = a.Body.Close()
				}
				if got := <-reached; strings.Count(got, theSecret) != 2 {
					t.Errorf("%s: the host got %q", name, got)
				}
				e.door.until(t, "the record", func() bool { return len(e.door.done) > 0 })
				e.door.mu.Lock()
				said += fmt.Sprintf("%+v %+v", e.door.done, e.door.rejected)
				e.door.mu.Unlock()
				for _, form := range []string{theSecret, url.PathEscape(theSecret), "canary"} {
					if strings.Contains(said, form) {
						t.Errorf("%s, HTTP/2 %v: told was %q", name, http2, said)
					}
				}
			}
		}
	})
}

// TestWhatTheHostIsAskedFor and what is let in: nothing in which a secret can't be found.
func TestWhatTheHostIsAskedFor(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		var asked http.Header
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header.Clone()
			for name, values := range r.URL.Query() {
				if name != "status" {
					w.Header()[name] = values
				}
			}
			if r.URL.Query().Has("status") {
				w.WriteHeader(http.StatusPartialContent)
			}
		}), "api.example")
		e.door.exchange = sees(t, exchange.Header)
		c := e.client(t, http2)
		for query, refused := range map[string]string{
			"": "", "Content-Encoding=identity": "", "Content-Encoding=": "", "Grpc-Encoding=identity": "", "Content-Encoding=gzip": "encodes its answer",
			"Content-Encoding=identity&Content-Encoding=gzip": "encodes its answer", "Content-Encoding=&Content-Encoding=br": "encodes its answer", "Content-Encoding=identity,gzip": "encodes its answer",
			"Grpc-Encoding=gzip": "encodes its answer", "Connect-Content-Encoding=zstd": "encodes its answer", "status=206": "a part of what it has",
			"Content-Type=multipart/byteranges;boundary=a": "a part of what it has",
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/good/a?"+strings.ReplaceAll(query, ";", "%3B"), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Range", "If-Range", "Accept-Encoding", "A-IM", "Grpc-Accept-Encoding", "Connect-Accept-Encoding", "Sec-WebSocket-Extensions", "X-Kept"} {
				r.Header.Set(name, "gzip")
			}
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(a.Body)
			_ = a.Body.Close()
			if (a.StatusCode == 403) != (refused != "") || !strings.Contains(string(b), refused) {
				t.Errorf("%q: %d %s", query, a.StatusCode, b)
			}
			got := fmt.Sprint(asked)
			if asked.Get("Accept-Encoding") != "identity" || asked.Get("X-Kept") != "gzip" || strings.Count(got, "gzip") != 1 {
				t.Errorf("the host was asked with %s", got)
			}
		}
	})
}

// TestAWebSocketThatIsCompressed, or whose frames say so, is not let in; and a placeholder in
// a client's message does not leave, however its frames lie.
func TestAWebSocketThatIsCompressed(t *testing.T) {
	for name, c := range map[string]struct {
		answer, want string
	}{
		"plain":          {"\r\n\x81\x02hi", "\x81\x02hi"},
		"an extension":   {"Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n\x81\x02hi", ""},
		"a reserved bit": {"\r\n\xc1\x02hi", ""},
		"a masked frame": {"\r\n\x81\x82\x00\x00\x00\x00hi", ""},
	} {
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+c.answer)
		}), "api.example")
		e.door.exchange = sees(t, exchange.Header)
		conn := e.raw(t)
		if _, err := io.WriteString(conn, "GET /good/ws HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answers, body := bufio.NewReader(conn), []byte(nil)
		a, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.StatusCode == http.StatusSwitchingProtocols {
			body, _ = io.ReadAll(answers)
		}
		_ = conn.Close()
		if c.want != "" && string(body) != c.want || c.want == "" && bytes.Contains(body, []byte("hi")) {
			t.Errorf("%s: %d %q", name, a.StatusCode, body)
		}
	}
	for name, frames := range map[string][]byte{
		"harmless": clientFrame(0x81, "hello"), "whole": clientFrame(0x81, "my key is "+theFake), "base64": clientFrame(0x82, base64.StdEncoding.EncodeToString([]byte(theFake))),
		"fragments": slices.Concat(clientFrame(0x01, "key "+theFake[:9]), clientFrame(0x89, "ping"), clientFrame(0x80, theFake[9:])), "ping": clientFrame(0x89, theFake),
	} {
		got := make(chan string, 1)
		e := endAt(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, both, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			b, _ := io.ReadAll(both)
			got <- string(b)
		}), "api.example")
		e.door.exchange = sees(t, exchange.Header)
		conn := e.raw(t)
		if _, err := io.WriteString(conn, "GET /good/ws HTTP/1.1\r\nHost: api.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if a, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || a.StatusCode != http.StatusSwitchingProtocols {
			t.Fatal(a, err)
		}
		if _, err := conn.Write(frames); err != nil {
			t.Fatal(err)
		}
		if name == "harmless" {
			_ = conn.CloseWrite()
		}
		if b := <-got; (b == string(frames)) != (name == "harmless") {
			t.Errorf("%s: the host got %q", name, b)
		}
		_ = conn.Close()
	}
}

func clientFrame(first byte, text string) []byte {
	key := []byte{1, 2, 3, 4}
	all := append([]byte{first, 0x80 | byte(len(text))}, key...)
	for i := range len(text) {
		all = append(all, text[i]^key[i%4])
	}
	return all
}
