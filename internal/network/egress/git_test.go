package egress_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

const gitDocument = `network_allowlist:
  - { host: api.example, git: { repos: [acme/*], push: hold } }
  - { host: api.example, git: { repos: [acme/locked], push: deny } }
`

// TestGitRequests: those for a repository that the policy has reach the host. Any other, and
// what could be taken for one, is told why not, as a push is in git's own way.
func TestGitRequests(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endUnder(t, gitDocument, got, "api.example")
		c := e.client(t, http2)
		if status, said := ask(t, c, "GET", "https://api.example/acme/app.git/info/refs?service=git-upload-pack", nil); status != 200 {
			t.Errorf("%d %s", status, said)
		}
		before := len(got.all())
		for _, request := range []string{
			"GET /acme/app.git/info/refs", "GET /acme/app.git/HEAD", "POST /acme/app.git/info/lfs/objects/batch", "GET /acme/app.git/info/refs?service=git-upload-pack&x=1",
			"GET /acme/app.git/info/refs?service=git-upload-pack" + strings.Repeat("x", 100), "POST /acme/app.git/git%2dupload-pack", "POST /acme/../other/lib.git/git-upload-pack", "POST /acme//app/git-upload-pack",
			"GET /other/lib.git/info/refs?service=git-upload-pack", "GET /acme/locked/info/refs?service=git-receive-pack", "POST /acme/locked/git-receive-pack",
		} {
			method, target, _ := strings.Cut(request, " ")
			if status, said := ask(t, c, method, "https://api.example"+target, nil); status != 403 || !strings.HasPrefix(said, "cofferdam: ") {
				t.Errorf("%s: %d %s", request, status, said)
			}
		}
		line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
		push := line(strings.Repeat("a", 40)+" "+strings.Repeat("b", 40)+" refs/heads/main\x00report-status side-band-64k") + "0000PACK\x00\x00\x00\x02\x00\x00\x00\x01rest"
		e.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Deny, Rule: "approval", Reason: "no"}}
		status, said := ask(t, c, "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(push))
		if want := line("\x02cofferdam: no (rule approval)\n") + line("\x01"+line("unpack ok\n")+line("ng refs/heads/main refused by cofferdam\n")+"0000") + "0000"; status != 200 || said != want {
			t.Errorf("%d %q", status, said)
		}
		e.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Hold, Rule: "network.git", Reason: "it waits"}, Approval: "ap-1"}
		if _, said = ask(t, c, "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(push)); !strings.Contains(said, "it waits; request ap-1; a person approves it on the host: cofferdam approvals approve ap-1; push again then") {
			t.Errorf("what nobody has answered is told %q", said)
		}
		e.door.mu.Lock()
		e.door.unable = true
		e.door.mu.Unlock()
		if _, said = ask(t, c, "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(push)); !strings.Contains(said, "the push could not be judged") || !strings.Contains(said, "ng refs/heads/main") {
			t.Errorf("what nobody can be asked about is told %q", said)
		}
		if all := got.all(); len(all) != before {
			t.Errorf("the host saw %q", all[before:])
		}
	})
}

// TestTheHostIsLeftWhileAPushWaits: the connection to it ends, and the push has another.
func TestTheHostIsLeftWhileAPushWaits(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endUnder(t, gitDocument, got, "api.example")
		c := e.client(t, http2)
		if status, said := ask(t, c, "GET", "https://api.example/acme/app.git/info/refs?service=git-receive-pack", nil); status != 200 {
			t.Fatalf("%d %s", status, said)
		}
		push := fmt.Sprintf("%04x%s0000PACK\x00\x00\x00\x02\x00\x00\x00\x01", 4+80+18, strings.Repeat("a", 40)+" "+strings.Repeat("b", 40)+" refs/heads/main\x00")
		pushed := make(chan int, 1)
		go func() {
			status, _ := ask(t, c, "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(push))
			pushed <- status
		}()
		e.door.until(t, "the connection's end", func() bool { return len(e.door.pushes) == 2 && len(e.door.begun) == 1 && len(e.door.ended) == 1 })
		e.door.answer <- yes()
		if status := <-pushed; status != 200 {
			t.Errorf("the push is answered with %d", status)
		}
		e.door.until(t, "another connection", func() bool { return len(e.door.begun) == 2 })
	})
}

// TestARequestBesideAHeldPushHasAnEnd: the push ends the connection to the host, and a request
// that was under way beside it ends when its client wants. That end is on record while the push
// still waits, since the log knows for a while only which connections have ended.
func TestARequestBesideAHeldPushHasAnEnd(t *testing.T) {
	e := endUnder(t, gitDocument, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for much := make([]byte, 64<<10); strings.HasSuffix(r.URL.Path, "/git-upload-pack"); {
			if _, err := w.Write(much); err != nil {
				return
			}
		}
	}), "api.example")
	c := e.client(t, true)
	framed := &http.Protocols{}
	framed.SetHTTP2(true)
	c.Transport.(*http.Transport).Protocols = framed // git's hosts speak HTTP/1.1 with whoever offers it
	fetch, err := c.Post("https://api.example/acme/app/git-upload-pack", "", strings.NewReader("0000"))
	if err != nil {
		t.Fatal(err)
	}
	defer fetch.Body.Close()
	push := fmt.Sprintf("%04x%s0000PACK\x00\x00\x00\x02\x00\x00\x00\x01", 4+80+18, strings.Repeat("a", 40)+" "+strings.Repeat("b", 40)+" refs/heads/main\x00")
	pushed := make(chan int, 1)
	go func() {
		status, _ := ask(t, c, "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(push))
		pushed <- status
	}()
	e.door.until(t, "the end of the connection", func() bool { return len(e.door.pushes) == 2 && len(e.door.begun) == 1 && len(e.door.ended) == 1 })
	_ = fetch.Body.Close()
	e.door.until(t, "the end of the fetch", func() bool {
		return slices.ContainsFunc(e.door.done, func(one door.RequestDone) bool { return strings.HasSuffix(one.Path, "/git-upload-pack") })
	})
	e.door.answer <- yes()
	if status := <-pushed; status != 200 {
		t.Errorf("the push is answered with %d", status)
	}
}

// TestCompressedPush: what was read is what is sent, so a push arrives uncompressed; one
// that can't be read never does.
func TestCompressedPush(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endUnder(t, gitDocument, got, "api.example")
		c := e.client(t, http2)
		line := func(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }
		push := line(strings.Repeat("a", 40)+" "+strings.Repeat("b", 40)+" refs/heads/main\x00report-status") + "0000PACK\x00\x00\x00\x02\x00\x00\x00\x01rest"
		send := func(body, coding string) (int, string) {
			r, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			switch coding {
			case "":
			case "gzip twice":
				r.Header["Content-Encoding"] = []string{"gzip", "gzip"}
			default:
				r.Header.Set("Content-Encoding", coding)
			}
			a, err := c.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer a.Body.Close()
			said, err := io.ReadAll(a.Body)
			if err != nil {
				t.Fatal(err)
			}
			return a.StatusCode, string(said)
		}
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, _ = io.WriteString(z, push)
		_ = z.Close()
		e.door.answer <- yes()
		if status, said := send(small.String(), "gzip"); status != 200 {
			t.Errorf("%d %s", status, said)
		}
		want := []string{fmt.Sprintf("POST api.example /acme/app/git-receive-pack %q", push)}
		for body, coding := range map[string]string{
			small.String() + " ": "gzip twice",
			push:                 "br", small.String(): "deflate", "no gzip": "gzip", "0000" + push: "", push[:40]: "", "": "", strings.Replace(push, "refs/heads/main", "refs/heads/m\x1bin", 1): "",
		} {
			if status, said := send(body, coding); status/100 != 4 || !strings.HasPrefix(said, "cofferdam: ") {
				t.Errorf("%.20q %s: %d %s", body, coding, status, said)
			}
		}
		if all := got.all(); !slices.Equal(all, want) {
			t.Errorf("the host saw %q", all)
		}
		if status, _ := send("0000", ""); status != 200 {
			t.Errorf("an empty push is answered with %d", status)
		}
		if n := len(e.door.pushes); n != 2 {
			t.Errorf("somebody was asked %d times", n)
		}
	})
}

// TestAPushWhoseClientGoes ends its wait.
func TestAPushWhoseClientGoes(t *testing.T) {
	each(t, func(t *testing.T, http2 bool) {
		t.Helper()
		got := &seen{}
		e := endUnder(t, gitDocument, got, "api.example")
		ctx, cancel := context.WithCancel(t.Context())
		push := fmt.Sprintf("%04x%s0000PACK\x00\x00\x00\x02\x00\x00\x00\x01", 4+80+18, strings.Repeat("a", 40)+" "+strings.Repeat("b", 40)+" refs/heads/main\x00")
		r, err := http.NewRequestWithContext(ctx, "POST", "https://api.example/acme/app/git-receive-pack", strings.NewReader(push))
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan error, 1)
		go func() {
			a, err := e.client(t, http2).Do(r)
			if err == nil {
				_ = a.Body.Close() // it is not wanted
			}
			gone <- err
		}()
		e.door.until(t, "the question", func() bool { return len(e.door.pushes) == 2 })
		cancel()
		if err := <-gone; err == nil {
			t.Error("the request was answered")
		}
		e.door.until(t, "the end of the wait", func() bool { return e.door.left == 1 })
		if all := got.all(); len(all) != 0 {
			t.Errorf("the host saw %q", all)
		}
	})
}

// TestGitSpeaksHTTP1: a client that offers both is given HTTP/1.1 where repositories are
// judged, and HTTP/2 where other rules are; one that offers HTTP/2 alone has it.
func TestGitSpeaksHTTP1(t *testing.T) {
	for name, c := range map[string]struct {
		document, want string
		offers         []string
	}{
		"git":                  {gitDocument, "http/1.1", []string{"h2", "http/1.1"}},
		"git, and HTTP/2 only": {gitDocument, "h2", []string{"h2"}},
		"others":               {"network_allowlist: [ { host: api.example, methods: [GET] } ]\n", "h2", []string{"h2", "http/1.1"}},
	} {
		e := endUnder(t, c.document, &seen{}, "api.example")
		config := e.tls.Clone()
		config.NextProtos = c.offers
		conn := tls.Client(to(t, e.dial(), "api.example", 443), config)
		if err := conn.HandshakeContext(t.Context()); err != nil {
			t.Fatal(name, err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != c.want {
			t.Errorf("%s: %q, want %s", name, got, c.want)
		}
		_ = conn.Close()
	}
}
