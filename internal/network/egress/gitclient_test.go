//go:build long

package egress_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
)

// forge is a host of repositories behind the gateway, and a person's directory with a clone.
type forge struct {
	*end
	root string // of the bare repositories
	home string // of the client, with the clone in work
	env  []string
	got  *seenPaths
}

// seenPaths are the requests that reached the host.
type seenPaths struct {
	seen
	next http.Handler
}

func (s *seenPaths) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Content-Encoding"))
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body) // CGI takes no body of a length that is not known
	if err != nil {
		return // the client has gone
	}
	r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	s.next.ServeHTTP(w, r)
}

// run runs git in the client's directory, and gives what it prints.
func (f *forge) run(t *testing.T, dir string, args ...string) (said string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = filepath.Join(f.home, dir), f.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is run for what has to succeed.
func (f *forge) must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	said, err := f.run(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return strings.TrimSpace(said)
}

// commit makes a commit with a file of random bytes in the clone.
func (f *forge) commit(t *testing.T, size int) (name string) {
	t.Helper()
	content := make([]byte, size)
	for i, x := 0, uint32(size); i < size; i++ { // which nothing makes smaller
		x = x*1664525 + 1013904223
		content[i] = byte(x >> 24)
	}
	if err := os.WriteFile(filepath.Join(f.home, "work", fmt.Sprintf("file%d", size)), content, 0o600); err != nil {
		t.Fatal(err)
	}
	f.must(t, "work", "add", ".")
	f.must(t, "work", "commit", "-q", "-m", "one more")
	return f.must(t, "work", "rev-parse", "HEAD")
}

// newForge has the repositories acme/app, acme/locked and other/lib, and a clone of the first.
func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{root: t.TempDir(), home: t.TempDir()}
	f.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + f.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@t.example", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@t.example",
	}
	f.must(t, "", "init", "-q", "-b", "main", "work")
	f.commit(t, 10)
	for _, name := range []string{"acme/app", "acme/locked", "other/lib"} {
		f.must(t, "", "clone", "-q", "--bare", "work", filepath.Join(f.root, name+".git"))
		f.must(t, "", "-C", filepath.Join(f.root, name+".git"), "config", "uploadpack.allowFilter", "true")
	}
	programs := f.must(t, "", "--exec-path")
	f.got = &seenPaths{next: &cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + f.root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "GIT_CONFIG_NOSYSTEM=1", "HOME=" + f.home},
	}}
	f.end = endUnder(t, gitDocument, f.got, "api.example")
	ca := filepath.Join(f.home, "ca.pem")
	if err := os.WriteFile(ca, f.ca, 0o600); err != nil {
		t.Fatal(err)
	}
	f.env = append(f.env, "GIT_SSL_CAINFO="+ca, "https_proxy="+f.proxy(t))
	f.must(t, "work", "remote", "add", "origin", "https://api.example/acme/app.git")
	return f
}

// proxy brings a client's connections to the gateway as a sandbox's.
func (f *forge) proxy(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nobody connects any more
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go f.bridge(t, conn)
		}
	}()
	return "http://" + l.Addr().String()
}

func (f *forge) bridge(t *testing.T, conn net.Conn) {
	t.Helper()
	defer conn.Close()
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err != nil || r.Method != http.MethodConnect {
		return
	}
	stream := f.dial()
	defer stream.Close()
	if r := open(t, stream, "sb-1", channel.Open{Kind: channel.OpenTCP, Name: "api.example", Port: 443}); !r.OK {
		t.Error(r.Error)
		return
	}
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n\r\n")
	go func() {
		_, _ = io.Copy(stream, conn)
		_ = stream.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(conn, stream)
}

// TestGitFetches: a clone, a shallow one and one without blobs pass; another repository is
// refused with a reason that git prints, and nothing of that reaches the host.
func TestGitFetches(t *testing.T) {
	f := newForge(t)
	for name, flags := range map[string][]string{"whole": nil, "shallow": {"--depth=1"}, "partial": {"--filter=blob:none"}, "old": {"-c", "protocol.version=0"}} {
		f.must(t, "", append(append([]string{"clone", "-q"}, flags...), "https://api.example/acme/app", name)...)
		if _, err := os.Stat(filepath.Join(f.home, name, "file10")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := len(f.got.all())
	said, err := f.run(t, "", "clone", "-q", "https://api.example/other/lib.git")
	if err == nil || !strings.Contains(said, "remote: cofferdam: the policy's git rules for api.example allow no fetch of other/lib") || !strings.Contains(said, "see: cofferdam why") {
		t.Errorf("a clone of another one: %v\n%s", err, said)
	}
	if got := f.got.all(); len(got) != before {
		t.Errorf("the host saw %q", got[before:])
	}
}

// TestGitPushes: a push waits for a person, who is told what it changes; then it reaches
// the host as it was, or git prints why not.
func TestGitPushes(t *testing.T) {
	f := newForge(t)
	old := f.must(t, "work", "rev-parse", "HEAD")
	small, head := f.commit(t, 100), func() string { return f.must(t, "", "-C", filepath.Join(f.root, "acme/app.git"), "rev-parse", "main") }
	f.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Hold, Rule: "network.git", Reason: "it waits"}, Approval: "ap-1"}
	said, err := f.run(t, "work", "push", "origin", "main")
	if err == nil || !strings.Contains(said, "remote: cofferdam: it waits; request ap-1; a person approves it on the host: cofferdam approvals approve ap-1; push again then (rule network.git)") ||
		!strings.Contains(said, "[remote rejected] main -> main") || head() != old {
		t.Errorf("a push that waits: %v, the host has %s\n%s", err, head(), said)
	}
	if n := len(f.door.begun); n != 1 || len(f.door.ended) != 1 {
		t.Errorf("%d connections to the host began, and %d ended, while the push waited", n, len(f.door.ended))
	}
	f.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Allow}}
	if said := f.must(t, "work", "push", "origin", "main"); head() != small {
		t.Errorf("an approved push is not there\n%s", said)
	}
	last := f.door.pushes[len(f.door.pushes)-1]
	if c := last.Change.Commands; len(c) != 1 || c[0].Old != old || c[0].New != small || c[0].Ref != "refs/heads/main" || last.Change.Objects != 3 || last.Path != "/acme/app.git/git-receive-pack" || last.Size == 0 {
		t.Errorf("a person is asked about %+v", last)
	}
	large := f.commit(t, 3<<20) // git sends an empty push first, then chunks
	f.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Deny, Rule: "approval", Reason: "no"}}
	if said, err := f.run(t, "work", "push", "origin", "main"); err == nil || !strings.Contains(said, "remote: cofferdam: no (rule approval)") || head() != small {
		t.Errorf("a large push that is denied: %v\n%s", err, said)
	}
	f.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Allow}}
	if said := f.must(t, "work", "push", "origin", "main", "HEAD:refs/heads/second"); head() != large {
		t.Errorf("a large push is not there\n%s", said)
	}
	f.door.answer <- door.Answer{Decision: policy.Decision{Effect: policy.Allow}}
	f.must(t, "work", "push", "origin", ":second")
	if c := f.door.pushes[len(f.door.pushes)-1].Change; len(c.Commands) != 1 || !c.Commands[0].Deletes() || c.Objects != 0 {
		t.Errorf("a person is asked about %+v", c)
	}
	before := len(f.got.all())
	said, err = f.run(t, "work", "push", "https://api.example/acme/locked", "main")
	if err == nil || !strings.Contains(said, "remote: cofferdam: the policy's git rules for api.example allow no push of acme/locked") || len(f.got.all()) != before {
		t.Errorf("a push that is refused: %v\n%s", err, said)
	}
}
