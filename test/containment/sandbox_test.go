package containment

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"

	"github.com/cofferdam-dev/cofferdam/client"
)

// policyDocument is the policy of every sandbox here: one package, no network.
const policyDocument = `version: "1"
defaults: { network_default: deny, timeout_seconds: 120, max_memory_mb: 512, max_cpu: 2, max_disk_mb: 256, max_pids: 128 }
packages: { default: deny }
allowed_packages: { python: [ { name: golden } ] }
`

// law is a policy that sandboxes are under, by its name.
type law struct{ name, document string }

// denying is the law of most: no name but the registries'.
func denying() law { return law{"denying", policyDocument} }

// listing also has one name, by itself and by the proxy inside.
func listing() law {
	return law{"listing", policyDocument + "network_allowlist: [ " + listedHost + " ]\nnetwork_proxy: true\n"}
}

// ending has requests to that name judged, so that its TLS is ended.
func ending() law {
	return law{"ending", policyDocument + "network_allowlist: [ { host: " + listedHost + ", methods: [GET], paths: [\"/welcome/*\"] } ]\nnetwork_proxy: true\n"}
}

func (l law) apply(req *api.CreateSandbox) { req.Policy.Document = []byte(l.document) }

// sandbox is a real one, of the daemon.
type sandbox struct {
	*stage
	id, run string
	program string // where the probe is inside
}

// open makes a sandbox that ends with the test.
func (s *stage) open(t *testing.T, change func(*api.CreateSandbox)) *sandbox {
	t.Helper()
	req := api.CreateSandbox{
		Engine: os.Getenv(engineVariable), Template: template(), Policy: api.Policy{Document: []byte(policyDocument)}, Linger: true,
		Mounts: []api.Mount{{Source: probeDir(), Destination: "/probe"}},
	}
	if change != nil {
		change(&req)
	}
	made, err := s.client.CreateSandbox(t.Context(), req)
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return s.keep(t, made)
}

// manner is how a probe is run.
type manner struct {
	name       string
	user       string // "" is the default user
	terminal   bool
	background bool // in a daemonised child
}

// manners are all of them: probes are run in each.
func manners() []manner {
	return []manner{
		{name: "the user"},
		{name: "root inside", user: "root"},
		{name: "a terminal", terminal: true},
		{name: "a daemonised child of root", user: "root", background: true},
	}
}

// probe runs a probe.
func (b *sandbox) probe(t *testing.T, m manner, args ...string) outcome {
	t.Helper()
	argv := append([]string{b.program}, args...)
	if m.background {
		argv = append([]string{b.program, "daemonise"}, args...)
	}
	req := api.StartCommand{Argv: argv, User: m.user, Dir: "/"}
	if m.terminal {
		req.Rows, req.Cols = 24, 80
	}
	text, exit := b.command(t, req)
	return outcome{text, exit.Code}
}

// command runs any command to its end.
func (b *sandbox) command(t *testing.T, req api.StartCommand) (string, api.Exit) {
	t.Helper()
	started, err := b.client.StartCommand(t.Context(), b.id, req)
	if err != nil {
		t.Fatalf("start %q: %v", req.Argv, err)
	}
	attached, err := b.client.Attach(t.Context(), b.id, started.ID, 0)
	if err != nil {
		t.Fatalf("attach to %q: %v", req.Argv, err)
	}
	defer func() { _ = attached.Close() }()
	var text strings.Builder
	for event, err := range attached.Events() {
		if err != nil {
			t.Fatalf("%q: %v", req.Argv, err)
		}
		text.Write(event.Stdout)
		text.Write(event.Stderr)
		if event.Exit != nil {
			return text.String(), *event.Exit
		}
	}
	t.Fatalf("%q ended without an exit", req.Argv)
	return "", api.Exit{}
}

// start begins a command that goes on, and returns its id.
func (b *sandbox) start(t *testing.T, req api.StartCommand) string {
	t.Helper()
	started, err := b.client.StartCommand(t.Context(), b.id, req)
	if err != nil {
		t.Fatalf("start %q: %v", req.Argv, err)
	}
	return started.ID
}

// records are what the log has of this run.
func (b *sandbox) records(t *testing.T) []audit.Record {
	t.Helper()
	var all []audit.Record
	for line, err := range b.client.Records(t.Context(), client.RecordFilter{Run: b.run}) {
		if err != nil {
			t.Fatal(err)
		}
		var r audit.Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}
