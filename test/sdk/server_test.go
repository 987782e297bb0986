package sdk

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/namedpolicy"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/e2b"
)

func newRun() string { return rand.Text() }

const domain = "sandbox.example"

// server is both planes over pretended sandboxes, on one loopback address.
type server struct {
	url  string
	keys map[string]string // of the clients, by their names
}

type templates struct{}

func (templates) Known() []template.Known { return []template.Known{{Name: template.NameDebian}} }

func (templates) Meant(name string) string { return name }

func (templates) List(context.Context) ([]template.Template, error) {
	return []template.Template{{Name: template.NameDebian}}, nil
}

// serve starts a server that ends with the test.
func serve(t *testing.T) server {
	t.Helper()
	life := backendtest.NewLife(t.TempDir())
	book, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	named, err := namedpolicy.Open(filepath.Join(t.TempDir(), "named"), book.Users)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data", "secret"} {
		if _, err := named.Put(name, name, []byte("packages: { default: hold }\n")); err != nil {
			t.Fatal(err)
		}
	}
	access, err := e2b.LoadKeys(filepath.Join(t.TempDir(), "access.key"), life)
	if err != nil {
		t.Fatal(err)
	}
	s := server{keys: map[string]string{}}
	for _, g := range []token.Grant{
		{Name: "main", Policies: []string{"data"}},
		{Name: "other"},
		{Name: "few", Quota: token.Quota{Sandboxes: 1}},
		{Name: "slow", Quota: token.Quota{CreatesPerMinute: 1}},
	} {
		if _, s.keys[g.Name], err = book.Issue(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.DiscardHandler)
	control := e2b.NewControl(e2b.Config{
		Sandboxes: life, Tokens: book, Policies: named, Templates: templates{}, Access: access,
		DefaultTemplate: template.NameDebian, Domain: domain, Log: log,
	})
	data := e2b.NewData(e2b.DataConfig{Sandboxes: life, Access: access, Clients: book, Domain: domain, Log: log})
	both := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if data.Owns(r) {
			data.ServeHTTP(w, r)
			return
		}
		control.ServeHTTP(w, r)
	}))
	t.Cleanup(both.Close)
	s.url = both.URL
	return s
}

// environment is what a program needs to find the server.
func (s server) environment() []string {
	return append(os.Environ(),
		"E2B_API_URL="+s.url, "E2B_SANDBOX_URL="+s.url, "E2B_API_KEY="+s.keys["main"], "E2B_DOMAIN="+domain, "TEST_DOMAIN="+domain,
		"OTHER_KEY="+s.keys["other"], "FEW_KEY="+s.keys["few"], "SLOW_KEY="+s.keys["slow"])
}

// programTimeout with one program; it only ends what hangs.
const programTimeout = 5 * time.Minute

// run runs a program to its end and counts what it says that worked.
func run(t *testing.T, env []string, least int, argv ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), programTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	worked := 0
	for lines := bufio.NewScanner(bytes.NewReader(out.Bytes())); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "ok ") {
			worked++
		}
	}
	if err != nil || worked < least {
		t.Errorf("%d things worked, want %d at least: %v\n%s", worked, least, err, out.Bytes())
	}
	t.Logf("%s", out.Bytes())
}
