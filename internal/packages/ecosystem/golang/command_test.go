package golang_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
)

// served is what stands between the go command and an upstream: the protocol,
// with a policy by name and version. It is to the gateway what a sketch is.
type served struct {
	t        *testing.T
	upstream map[string]golangtest.Answer // below the base
	deny     map[string]bool              // "PATH VERSION", or "PATH" as a whole
	log      *lent
	url      string

	mu    sync.Mutex
	asked []string
}

const upstreamBase = "https://index.example/up/"

func serve(t *testing.T, d *golangtest.Database, ms ...golangtest.Module) *served {
	t.Helper()
	s := &served{t: t, upstream: golangtest.Proxy(t, ms...), deny: map[string]bool{}, log: lend(d)}
	for path, a := range d.Answers() {
		s.upstream["sumdb/"+d.Name+"/"+path] = a
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL + "/up/"
	return s
}

func (s *served) get(ask ecosystem.Ask) ([]byte, error) {
	path, ok := strings.CutPrefix(ask.URL, upstreamBase)
	a, found := s.upstream[path]
	if !ok || !found {
		return nil, fault.New(fault.ErrNotFound, "the upstream has no %s", path)
	}
	return a.Body, nil
}

func (s *served) denied(project, version string) bool {
	return s.deny[project] || s.deny[project+" "+version]
}

func (s *served) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, req.URL.EscapedPath())
	s.mu.Unlock()
	p := golang.New()
	place := ecosystem.Place{Base: "/up/", Files: true}
	r, err := p.Route(place, ecosystem.Request{Method: req.Method, Path: req.URL.EscapedPath(), Query: req.URL.RawQuery})
	var a ecosystem.Answer
	if err == nil {
		a, err = s.answer(r)
	}
	if err != nil {
		refusal := ecosystem.Refusal{Route: r.Kind, Cause: ecosystem.Missing, What: strings.TrimSpace("go " + r.Project + " " + r.Version), Reason: "the upstream has no such module or version"}
		switch {
		case errors.Is(err, fault.ErrForbidden):
			refusal.Cause, refusal.Reason, refusal.Rule = ecosystem.ByPolicy, "its version is younger than 7 days", "packages.min_release_age"
			refusal.RequestID, refusal.Suggest = "r-17", "allowed_packages:\n  go:\n    - name: "+r.Project
		case errors.Is(err, fault.ErrInvalid):
			refusal.Cause, refusal.Reason = ecosystem.Unverified, err.Error()
		}
		a = p.Refuse(refusal)
	}
	s.send(w, a)
}

// send writes an answer with its own reason phrase.
func (s *served) send(w http.ResponseWriter, a ecosystem.Answer) {
	if a.Phrase == "" {
		a.Phrase = "OK"
	}
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.t.Error(err)
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", a.Status, a.Phrase, a.ContentType, len(a.Body))
	_, _ = conn.Write(a.Body)
}

func (s *served) answer(r ecosystem.Route) (ecosystem.Answer, error) {
	p := golang.New()
	switch r.Kind {
	case ecosystem.RouteAnswered:
		return *r.Answer, nil
	case ecosystem.RoutePass:
		body, err := s.get(p.PassAsk(upstreamBase, r))
		return ecosystem.Answer{Status: 200, ContentType: "text/plain", Body: body}, err
	case ecosystem.RouteIndex:
		return s.list(r)
	case ecosystem.RouteAttachment:
		if s.deny[r.Project] {
			return ecosystem.Answer{}, fault.New(fault.ErrForbidden, "denied")
		}
		body, err := s.get(p.AttachmentAsk(upstreamBase, r))
		if err != nil {
			return ecosystem.Answer{}, err
		}
		a, err := p.Attachment(r, body)
		return ecosystem.Answer{Status: 200, ContentType: a.ContentType, Body: a.Body}, err
	case ecosystem.RouteFile:
		return s.file(r)
	default:
		return ecosystem.Answer{}, fault.New(fault.ErrNotFound, "there is no route of the kind %s", r.Kind)
	}
}

func (s *served) list(r ecosystem.Route) (ecosystem.Answer, error) {
	p := golang.New()
	ask := p.IndexAsk(upstreamBase, r.Project)
	body, err := s.get(ask)
	if err != nil {
		return ecosystem.Answer{}, err
	}
	ix, err := p.ParseIndex(r.Project, ecosystem.PageOf(ask.URL, "text/plain", body), nil)
	if err != nil {
		return ecosystem.Answer{}, err
	}
	view := ecosystem.View{Form: p.Form("")}
	for _, f := range ix.Files {
		view.Verdicts = append(view.Verdicts, ecosystem.Verdict{Allowed: !s.denied(r.Project, f.Version)})
	}
	var out bytes.Buffer
	err = p.Render(&out, ix, nil, view)
	return ecosystem.Answer{Status: 200, ContentType: p.ContentType(view.Form), Body: out.Bytes()}, err
}

func (s *served) file(r ecosystem.Route) (ecosystem.Answer, error) {
	p := golang.New()
	if s.denied(r.Project, r.Version) {
		return ecosystem.Answer{}, fault.New(fault.ErrForbidden, "denied")
	}
	f, err := p.Addressed(upstreamBase, r)
	if err != nil {
		return ecosystem.Answer{}, err
	}
	body, err := s.get(ecosystem.Ask{URL: f.URL})
	if err != nil {
		return ecosystem.Answer{}, err
	}
	attested, err := p.Attest(s.t.Context(), s.log, r.Project, r.Version)
	if err != nil {
		return ecosystem.Answer{}, err
	}
	if sum, err := p.SumFile(f, bytes.NewReader(body)); err != nil || sum != attested.File {
		return ecosystem.Answer{}, fault.Invalid("its bytes are not those that the checksum database knows")
	}
	if _, err := p.Inspect(f, nil, bytes.NewReader(body)); err != nil {
		return ecosystem.Answer{}, err
	}
	return ecosystem.Answer{Status: 200, ContentType: "application/zip", Body: body}, nil
}

// client is a module of the user's, and a go command that knows nothing but the
// proxy and the database's key.
type client struct {
	dir string
	env []string
}

func user(t *testing.T, s *served, database string) *client {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/user\n\ngo 1.21\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The command would go on writing counters into the folder after its end.
	if err := os.MkdirAll(filepath.Join(dir, ".config", "go", "telemetry"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".config", "go", "telemetry", "mode"), []byte("off"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &client{dir: dir, env: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GOPATH=" + dir + "/gopath", "GOCACHE=" + dir + "/cache", "GOENV=off",
		"GOPROXY=" + s.url, "GOSUMDB=" + database, "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GOWORK=off",
	}}
}

func (c *client) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *client) read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func fixtures(t *testing.T) []golangtest.Module {
	t.Helper()
	return []golangtest.Module{
		golangtest.New(t, "example.com/Dep", "v0.1.0"),
		golangtest.New(t, "example.com/a", "v1.0.0", "example.com/Dep v0.1.0"),
		golangtest.New(t, "example.com/a", "v1.1.0", "example.com/Dep v0.1.0"),
		golangtest.New(t, "example.com/a", "v1.2.0-rc.1", "example.com/Dep v0.1.0"),
		golangtest.Pack(t, "example.com/nested", "v1.0.0", [2]string{"go.mod", "module example.com/nested\n"}, [2]string{"sub/p.go", "package sub\n"}),
		golangtest.New(t, "example.com/untagged", "v0.0.0-20260102030405-0123456789ab"),
	}
}

// TestGoGet: an allowed module comes with what it needs, and the go command
// verifies it with the database that it reaches through the proxy alone.
func TestGoGet(t *testing.T) {
	ms := fixtures(t)
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	s := serve(t, d, ms...)
	c := user(t, s, d.Verifier)
	if out, err := c.run(t, "get", "example.com/a", "example.com/nested/sub"); err != nil {
		t.Fatalf("go get: %v\n%s", err, out)
	}
	mod, sum := c.read(t, "go.mod"), c.read(t, "go.sum")
	for _, want := range []string{"example.com/a v1.1.0", "example.com/Dep v0.1.0", "example.com/nested v1.0.0"} {
		if !strings.Contains(mod, want) {
			t.Errorf("go.mod has no %s:\n%s", want, mod)
		}
	}
	for _, want := range []string{"example.com/a v1.1.0 " + ms[2].ZipSum, "example.com/a v1.1.0/go.mod " + ms[2].ModSum, "example.com/Dep v0.1.0 " + ms[0].ZipSum} {
		if !strings.Contains(sum, want+"\n") {
			t.Errorf("go.sum has no %s:\n%s", want, sum)
		}
	}
	for _, want := range []string{"/up/sumdb/sum.example/supported", "/up/sumdb/sum.example/lookup/example.com/a@v1.1.0"} {
		if !slices.Contains(s.asked, want) {
			t.Errorf("the go command did not ask for %s: %v", want, s.asked)
		}
	}
	if !slices.ContainsFunc(s.asked, func(p string) bool { return strings.HasPrefix(p, "/up/sumdb/sum.example/tile/8/0/") }) {
		t.Errorf("the go command asked for no tile: %v", s.asked)
	}
}

// TestGoVerifies: the positive control of the relay. A zip that the upstream and
// the gateway's own witness agree on is refused by the client where the database
// that is relayed to it is signed by somebody else.
func TestGoVerifies(t *testing.T) {
	ms := fixtures(t)
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	s := serve(t, d, ms...)
	for path, a := range golangtest.NewDatabase(t, "sum.example", ms...).Answers() {
		s.upstream["sumdb/sum.example/"+path] = a
	}
	out, err := user(t, s, d.Verifier).run(t, "get", "example.com/a")
	if err == nil || !strings.Contains(out, "verifying") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGoShows: what the go command prints where something is refused.
func TestGoShows(t *testing.T) {
	ms := fixtures(t)
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	reason := []string{"403 Blocked by cofferdam: go example.com/a", "its version is younger than 7 days", "rule: packages.min_release_age", "request r-17; see: cofferdam why", "to allow it:", "- name: example.com/a"}
	for name, c := range map[string]struct {
		deny    []string
		get     []string
		change  func(s *served)
		want    []string
		succeed bool
	}{
		"a version is withheld":     {deny: []string{"example.com/a v1.1.0"}, get: []string{"example.com/a"}, want: []string{"added example.com/a v1.0.0"}, succeed: true},
		"only a pre-release is not": {deny: []string{"example.com/a v1.1.0", "example.com/a v1.0.0"}, get: []string{"example.com/a"}, want: []string{"added example.com/a v1.2.0-rc.1"}, succeed: true},
		"a withheld one is pinned":  {deny: []string{"example.com/a v1.1.0"}, get: []string{"example.com/a@v1.1.0"}, want: reason},
		"all are withheld":          {deny: []string{"example.com/a v1.0.0", "example.com/a v1.1.0", "example.com/a v1.2.0-rc.1"}, get: []string{"example.com/a"}, want: reason},
		"the name is refused":       {deny: []string{"example.com/a"}, get: []string{"example.com/a"}, want: reason},
		"the name, pinned":          {deny: []string{"example.com/a"}, get: []string{"example.com/a@v1.0.0"}, want: reason},
		"a dependency is refused":   {deny: []string{"example.com/Dep"}, get: []string{"example.com/a"}, want: []string{"403 Blocked by cofferdam: go example.com/Dep v0.1.0", "its version is younger"}},
		"there is no such module":   {get: []string{"example.com/none"}, want: []string{"404 Not found: go example.com/none", "the upstream has no such module or version"}},
		"there is no such version":  {get: []string{"example.com/a@v1.9.0"}, want: []string{"404 Not found: go example.com/a v1.9.0"}},
		"a module above is refused": {deny: []string{"example.com"}, get: []string{"example.com/nested/sub"}, want: []string{"added example.com/nested v1.0.0"}, succeed: true},
		"a commit":                  {get: []string{"example.com/untagged@v0.0.0-20260102030405-0123456789ab"}, want: []string{"added example.com/untagged v0.0.0-20260102030405-0123456789ab"}, succeed: true},
		"a branch": {
			get: []string{"example.com/untagged@main"}, want: []string{"added example.com/untagged v0.0.0-20260102030405-0123456789ab"}, succeed: true,
			change: func(s *served) {
				s.upstream["example.com/untagged/@v/main.info"] = s.upstream["example.com/untagged/@v/v0.0.0-20260102030405-0123456789ab.info"]
			},
		},
		"no tags, and the proxy knows the latest": {
			get: []string{"example.com/untagged"}, want: []string{"added example.com/untagged v0.0.0-20260102030405-0123456789ab"}, succeed: true,
			change: func(s *served) {
				s.upstream["example.com/untagged/@latest"] = s.upstream["example.com/untagged/@v/v0.0.0-20260102030405-0123456789ab.info"]
			},
		},
		"no tags, and the proxy lists commits": {
			get: []string{"example.com/untagged"}, want: []string{"added example.com/untagged v0.0.0-20260102030405-0123456789ab"}, succeed: true,
			change: func(s *served) {
				s.upstream["example.com/untagged/@v/list"] = golangtest.Answer{Body: []byte("v0.0.0-20260102030405-0123456789ab\n")}
			},
		},
		"a version without a time": {
			get: []string{"example.com/a@v1.0.0"}, want: []string{"added example.com/a v1.0.0"}, succeed: true,
			change: func(s *served) {
				s.upstream["example.com/a/@v/v1.0.0.info"] = golangtest.Answer{Body: []byte(`{"Version":"v1.0.0"}`)}
			},
		},
		"a zip with other files": {
			get: []string{"example.com/a@v1.0.0"}, want: []string{"424 Blocked by cofferdam: go example.com/a v1.0.0", "its bytes are not those that the checksum database knows"},
			change: func(s *served) {
				evil := golangtest.New(t, "example.com/a", "v1.0.0")
				s.upstream[evil.Escaped(t, "zip")] = golangtest.Answer{Body: evil.Zip}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, d, ms...)
			for _, deny := range c.deny {
				s.deny[deny] = true
			}
			if c.change != nil {
				c.change(s)
			}
			out, err := user(t, s, d.Verifier).run(t, append([]string{"get"}, c.get...)...)
			if (err == nil) != c.succeed {
				t.Errorf("go get: %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("nothing of %q in\n%s", want, out)
				}
			}
		})
	}
}
