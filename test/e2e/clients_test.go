package e2e

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// realClients are what asks the host, each as its users write it, with what it prints and
// the requests that the host got from it.
func realClients() []realClient {
	py := func(name string) []string {
		return []string{"/home/agent/.venv/bin/python3", "/home/agent/app/clients.py", name}
	}
	js := func(name string) []string { return []string{"node", "/home/agent/app/clients.mjs", name} }
	const h1, h2 = "HTTP/1.1", "HTTP/2.0"
	one, two := h1+" Bearer XXX\n", h2+" Bearer XXX\n"
	chunks := fmt.Sprintf("100000 %x <nil>\n", sha256.Sum256(bytes.Repeat([]byte("x"), 100_000)))
	sockets := "5 %[1]srue\n70000 %[1]srue\n"
	plain := func(protocols ...string) (all []string) {
		for _, p := range protocols {
			all = append(all, p+" GET /plain")
		}
		return all
	}
	return []realClient{
		{"curl", []string{"sh", "/home/agent/app/curl.sh"}, one + two + "hi\n104857600 all of it <nil>100-continue\n104857600 all of it <nil>\n", append(plain(h1, h2), h1+" GET /too-much", h1+" PUT /upload", h2+" PUT /upload")},
		{"go", []string{"/home/agent/app/ask"}, two, plain(h2)},
		{"urllib", py("urllib"), one, plain(h1)},
		{"requests", py("requests"), one + one + chunks, append(plain(h1, h1), h1+" POST /upload")},
		{"httpx", py("httpx"), one + two, plain(h1, h2)},
		{"aiohttp", py("aiohttp"), one, plain(h1)},
		{"openai", py("openai"), "one two\n", []string{h1 + " POST /v1/chat/completions", h1 + " GET /go-on"}},
		{"anthropic", py("anthropic"), "one two\n", []string{h1 + " POST /v1/messages", h1 + " GET /go-on"}},
		{
			"grpc", py("grpc"), "you said one 1\n['m 0', 'm 1', 'm 2']\n3\n['you said 0', 'you said 1', 'you said 2']\nNOT_FOUND there is none\nyou said two\n",
			[]string{h2 + " POST /Unary", h2 + " POST /Many", h2 + " POST /Sum", h2 + " POST /Both", h2 + " POST /Fails", h2 + " POST /Unary"},
		},
		{"websockets", py("websockets"), fmt.Sprintf(sockets, "T") + "True\n", []string{h1 + " GET /socket"}},
		{"fetch", js("fetch"), one, plain(h1)},
		{"undici", js("undici"), one + two, plain(h1, h2)},
		{"https", js("https"), "something then that 9\n", []string{h1 + " POST /trailers"}},
		{"http2", js("http2"), two, plain(h2)},
		{"openai-js", js("openai"), "one two\n", []string{h1 + " POST /v1/chat/completions", h1 + " GET /go-on"}},
		{"anthropic-js", js("anthropic"), "one two\n", []string{h1 + " POST /v1/messages", h1 + " GET /go-on"}},
		{"ws", js("ws"), fmt.Sprintf(sockets, "t"), []string{h1 + " GET /socket"}},
	}
}

type realClient struct {
	name   string
	argv   []string
	prints string // XXX stands for a secret that came back
	asks   []string
}

const clientsPolicy = `name: clients
packages: { default: allow }
network_allowlist: [ api.example, %s.example ]
network_proxy: true
credentials:
  mode: just_in_time
  inject:
    - { host: api.example, secret: openai, env: OPENAI_API_KEY }
    - { host: api.example, secret: anthropic, env: ANTHROPIC_API_KEY }
defaults: { max_memory_mb: 2048, max_disk_mb: 8192 }
`

// TestRealClients: the clients that programs are made of ask a host over TLS that the
// gateway ends. Each takes its certificate by what the sandbox sets, and gets its answer;
// the host gets the secret from each. After all that, the secret is nowhere inside.
func TestRealClients(t *testing.T) {
	t.Parallel()
	if os.Getenv("COFFERDAM_LONG") == "" {
		t.Skip("set COFFERDAM_LONG=1 for this: it fetches some hundred megabytes")
	}
	if os.Geteuid() != 0 {
		t.Fatal("only root reads a sandbox's memory from outside")
	}
	h := serveClients(t, "api.example")
	control := "canary-" + strings.ToLower(rand.Text())
	in := start(t, h.config(t, control+".example"))
	sb := in.create("debian", fmt.Sprintf(clientsPolicy, control))
	in.installClients(t, sb)
	for _, c := range realClients() {
		in.tryClient(t, h, sb, c)
	}
	t.Run("java", func(t *testing.T) { // this machine's, which is no part of the other template
		box := in.create("host", fmt.Sprintf(clientsPolicy, control))
		in.copyClient(t, box, filepath.Join("testdata", "clients", "Ask.java"))
		in.tryClient(t, h, box, realClient{"java", []string{"java", "app/Ask.java"}, "HTTP/1.1 Bearer XXX\nHTTP/2.0 Bearer XXX\n", []string{"HTTP/1.1 GET /plain", "HTTP/2.0 GET /plain"}})
	})
	if wrong := h.strangers(); len(wrong) > 0 {
		t.Errorf("without the secret came %q", wrong)
	}
	in.wantAbsent(t, sb, control, h.secrets["openai"], h.secrets["anthropic"])
}

// tryClient has one ask, by itself and by the proxy inside, if it takes that.
func (in *installation) tryClient(t *testing.T, h *clientHost, sb api.Sandbox, c realClient) {
	t.Helper()
	masked := regexp.MustCompile(`x{57}\b`) // as long as the secrets
	for name, before := range map[string]string{"": "unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy; ", " with a proxy": ""} {
		t.Run(c.name+name, func(t *testing.T) {
			asked := len(h.requests(c.name))
			got := in.runClient(t, sb, append([]string{"sh", "-c", before + `exec "$@"`, "sh"}, c.argv...)...)
			if said := masked.ReplaceAllString(got.Stdout, "XXX"); got.Exit.Code != 0 || said != c.prints {
				t.Errorf("it ended with %+v and printed\n%s\nwant\n%s\n%s", got.Exit, said, c.prints, got.Stderr)
			}
			if all := h.requests(c.name)[asked:]; !slices.Equal(all, c.asks) {
				t.Errorf("the host got %q, want %q", all, c.asks)
			}
		})
	}
}

// copyClient puts a file where the clients are.
func (in *installation) copyClient(t *testing.T, sb api.Sandbox, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	to := client.File{Path: "/home/agent/app/" + filepath.Base(path), Mode: 0o755}
	if _, err := in.Client.WriteFile(t.Context(), sb.ID, to, bytes.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// installClients puts the clients and what they run into a sandbox.
func (in *installation) installClients(t *testing.T, sb api.Sandbox) {
	t.Helper()
	ask := filepath.Join(t.TempDir(), "ask")
	build := exec.Command("go", "build", "-o", ask, filepath.Join("testdata", "clients", "ask.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "clients", "*.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, ask) {
		in.copyClient(t, sb, path)
	}
	for _, install := range []string{
		"pip install -q requests 'httpx[http2]' aiohttp openai anthropic grpcio websockets",
		"cd app && npm install --silent openai @anthropic-ai/sdk undici ws",
	} {
		if got := in.runClient(t, sb, "sh", "-c", install); got.Exit.Code != 0 {
			t.Fatalf("%s ended with %+v\n%s%s", install, got.Exit, got.Stdout, got.Stderr)
		}
	}
}

// runClient runs a command to its end, in a test that may be another's part.
func (in *installation) runClient(t *testing.T, sb api.Sandbox, argv ...string) result {
	t.Helper()
	got, err := execute(t.Context(), in.Client, sb.ID, argv...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
