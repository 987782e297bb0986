package policy_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
)

func example(t *testing.T, name string) *policy.Policy {
	t.Helper()
	data, ok := examples(t)[name]
	if !ok {
		t.Fatalf("examples/%s is missing", name)
	}
	p, err := policy.Parse(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestGivenExamplesAreUnchanged: the three documents that others published
// load as they are, so their bytes are pinned.
func TestGivenExamplesAreUnchanged(t *testing.T) {
	for name, want := range map[string]string{
		"allowed-packages.yaml": "30f9deea4e65ee2c5ccc3f3303b2e29bb14c515186f3a384461fd02acbe14a4b",
		"research-agent.yaml":   "449eeddc2c5b66e4036f4b77455086a94da0b2e1c8c1fe76fbed4af405a16bca",
		"sandbox-config.yaml":   "9187d56817e227ba19b746f78e93082825cedc55189f6d18ea0c9614775c586c",
	} {
		sum := sha256.Sum256(examples(t)[name])
		if got := hex.EncodeToString(sum[:]); got != want {
			t.Errorf("examples/%s has the digest %s", name, got)
		}
		if got := example(t, name).Digest(); got != "sha256:"+want {
			t.Errorf("%s: the policy's digest is %s", name, got)
		}
	}
}

func TestExamplesDecide(t *testing.T) {
	tests := []struct {
		example, pkg, version string
		ecosystem             pkgref.Ecosystem
		kind                  policy.ArtifactKind
		want, rule            string
	}{
		{"allowed-packages.yaml", "numpy", "2.99.1", pkgref.Python, policy.KindWheel, "allow", "allowed_packages.python.numpy"},
		{"allowed-packages.yaml", "numpy", "1.0", pkgref.Python, policy.KindWheel, "allow", "allowed_packages.python.numpy"},
		{"allowed-packages.yaml", "numpy", "3.0", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.numpy.max_version"},
		{"allowed-packages.yaml", "numpy", "3.0.0rc1", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.numpy.max_version"},
		{"allowed-packages.yaml", "numpy", "3.0.dev1", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.numpy.max_version"},
		{"allowed-packages.yaml", "numpy", "1!1.0", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.numpy.max_version"},
		{"allowed-packages.yaml", "numpy", "2.1rc1", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.numpy.prereleases"},
		{"allowed-packages.yaml", "numpy", "2.1.post1", pkgref.Python, policy.KindWheel, "allow", "allowed_packages.python.numpy"},
		{"allowed-packages.yaml", "numpy", "2.1", pkgref.Python, policy.KindSdist, "deny", "packages.sdist"},
		{"allowed-packages.yaml", "numpy", "2.1", pkgref.Python, policy.KindOther, "deny", "packages.kind"},
		{"allowed-packages.yaml", "numpy", "2.1", pkgref.Python, "", "deny", "packages.kind"},
		{"allowed-packages.yaml", "numpy", "2.1-1", pkgref.Python, policy.KindWheel, "deny", "canonical"},
		{"allowed-packages.yaml", "numpy", "", pkgref.Python, policy.KindWheel, "deny", "canonical"},
		{"allowed-packages.yaml", "NumPy", "2.1", pkgref.Python, policy.KindWheel, "deny", "canonical"},
		{"allowed-packages.yaml", "numpy", "2.1.0", pkgref.Node, policy.KindWheel, "deny", "packages.default"},
		{"allowed-packages.yaml", "idna", "3.7", pkgref.Python, policy.KindWheel, "deny", "packages.default"},
		{"allowed-packages.yaml", "axios", "1.9.0", pkgref.Node, policy.KindWheel, "allow", "allowed_packages.node.axios"},
		{"allowed-packages.yaml", "axios", "2.0.0-rc.1", pkgref.Node, policy.KindWheel, "deny", "allowed_packages.node.axios.max_version"},
		{"research-agent.yaml", "requests", "2.31.0", pkgref.Python, policy.KindWheel, "deny", "packages.default"},
		{"sandbox-config.yaml", "requests", "2.31.0", pkgref.Python, policy.KindWheel, "deny", "packages.default"},
		{"data-analysis.yaml", "numpy", "2.1", pkgref.Python, policy.KindWheel, "allow", "allowed_packages.python.numpy"},
		{"data-analysis.yaml", "requests", "2.30.0", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.requests.version"},
		{"data-analysis.yaml", "requests", "3.0.0rc1", pkgref.Python, policy.KindWheel, "deny", "allowed_packages.python.requests.version"},
		{"data-analysis.yaml", "left-pad", "1.0", pkgref.Python, policy.KindWheel, "hold", "packages.default"},
		{"data-analysis.yaml", "left-pad", "1.0rc1", pkgref.Python, policy.KindWheel, "deny", "packages.prereleases"},
		{"data-analysis.yaml", "left-pad", "1.0", pkgref.Python, policy.KindSdist, "deny", "packages.sdist"},
		{"data-analysis.yaml", "event-stream", "1.0.0", pkgref.Node, policy.KindWheel, "deny", "blocked_packages.node.event-stream"},
		{"node-and-go.yaml", "express", "4.21.2", pkgref.Node, policy.KindPackage, "allow", "allowed_packages.node.express"},
		{"node-and-go.yaml", "express", "5.0.0", pkgref.Node, policy.KindPackage, "deny", "allowed_packages.node.express.version"},
		{"node-and-go.yaml", "event-stream", "3.3.6", pkgref.Node, policy.KindPackage, "deny", "blocked_packages.node.event-stream"},
		{"node-and-go.yaml", "golang.org/x/text", "v0.14.0", pkgref.Go, policy.KindPackage, "allow", "allowed_packages.go.golang.org/x/text"},
		{"node-and-go.yaml", "golang.org/x/net", "v0.14.0", pkgref.Go, policy.KindPackage, "deny", "packages.default"},
		{"locked-to-lockfiles.yaml", "numpy", "2.1", pkgref.Python, policy.KindWheel, "deny", "packages.default"},
		{"locked-down.yaml", "numpy", "2.1", pkgref.Python, policy.KindWheel, "deny", "packages.default"},
		{"built-apart.yaml", "docopt", "0.6.2", pkgref.Python, policy.KindSdist, "deny", "packages.sdist"},
		{"built-apart.yaml", "docopt", "0.6.2", pkgref.Python, policy.KindBuilt, "allow", "allowed_packages.python.docopt"},
		{"built-apart.yaml", "esbuild", "0.25.0", pkgref.Node, policy.KindRan, "allow", "allowed_packages.node.esbuild"},
		{"watchful.yaml", "numpy", "2.1", pkgref.Python, policy.KindWheel, "allow", "packages.default"},
		{"watchful.yaml", "numpy", "2.1", pkgref.Python, policy.KindSdist, "hold", "packages.sdist"},
		{"watchful.yaml", "urllib3", "1.26.17", pkgref.Python, policy.KindWheel, "deny", "blocked_packages.python.urllib3"},
		{"watchful.yaml", "urllib3", "1.26.18", pkgref.Python, policy.KindWheel, "allow", "packages.default"},
		{"watchful.yaml", "colourama", "1.0", pkgref.Python, policy.KindWheel, "deny", "blocked_packages.python.colourama"},
	}
	for _, tt := range tests {
		d := example(t, tt.example).Decide(clock(), policy.Input{
			Subject:   policy.Subject{Package: pkgref.Ref{Ecosystem: tt.ecosystem, Name: tt.pkg, Version: tt.version}},
			FileFacts: policy.FileFacts{Kind: tt.kind, Published: clock().Add(-365 * 24 * time.Hour)},
		})
		if string(d.Effect) != tt.want || d.Rule != tt.rule {
			t.Errorf("%s: %s %s %s is %s by %s, want %s by %s", tt.example, tt.pkg, tt.version, tt.kind, d.Effect, d.Rule, tt.want, tt.rule)
		}
		wellFormed(t, d)
	}
}

func TestExamplesJudgeCommands(t *testing.T) {
	command, code := "command", "code"
	tests := []struct{ example, field, text, want, rule string }{
		{"allowed-packages.yaml", command, "rm -rf /", "allow", "rules"},
		{"sandbox-config.yaml", command, "rm -rf /", "allow", "rules"},
		{"research-agent.yaml", code, "import subprocess", "deny", "rules.deny-shell-out"},
		{"research-agent.yaml", code, "print(1)", "allow", "defaults.action"},
		{"research-agent.yaml", command, "python3 subprocess.py", "allow", "defaults.action"},
		{"data-analysis.yaml", command, "sh -c curl x", "deny", "rules.no-downloads"},
		{"data-analysis.yaml", command, "curly", "allow", "defaults.action"},
		{"locked-down.yaml", command, "python3 task.py", "allow", "rules.python-only"},
		{"locked-down.yaml", command, "python3\n", "allow", "rules.python-only"},
		{"locked-down.yaml", command, "bash", "deny", "defaults.action"},
		{"locked-down.yaml", code, "python3", "deny", "defaults.action"},
	}
	for _, tt := range tests {
		in := policy.CommandInput{Command: &tt.text}
		if tt.field == code {
			in = policy.CommandInput{Code: &tt.text}
		}
		if d := example(t, tt.example).DecideCommand(in); string(d.Effect) != tt.want || d.Rule != tt.rule {
			t.Errorf("%s: %s %q is %+v", tt.example, tt.field, tt.text, d)
		}
	}
	code = "import subprocess"
	if d := example(t, "research-agent.yaml").DecideCommand(policy.CommandInput{Code: &code}); !strings.HasSuffix(d.Reason, ": shell-out blocked by research-agent policy") {
		t.Errorf("the rule's message is not told: %+v", d)
	}
	tool := "rm_everything"
	if d := example(t, "research-agent.yaml").DecideCommand(policy.CommandInput{Tool: &tool}); d.Effect != policy.Deny || d.Rule != "tool_allowlist" {
		t.Errorf("a tool off the list: %+v", d)
	}
}

func TestExamplesMean(t *testing.T) {
	article := example(t, "sandbox-config.yaml")
	if diff := cmp.Diff(policy.Resources{CPU: 2, MemoryBytes: 4 << 30, Timeout: 300 * time.Second}, article.Resources()); diff != "" {
		t.Error(diff)
	}
	if got := fmt.Sprint(article.Isolation() != "", article.Workspace(), article.Mounts(), article.NetworkAllowlist()); got != "true {/tmp/agent false} [] [api.openai.com:443 github.com:443]" {
		t.Error(got)
	}
	toolkit := example(t, "research-agent.yaml")
	if diff := cmp.Diff(policy.Resources{CPU: 1, MemoryBytes: 2 << 30, Timeout: 90 * time.Second}, toolkit.Resources()); diff != "" {
		t.Error(diff)
	}
	if toolkit.Name() != "research-agent" || toolkit.Version() != "2" || fmt.Sprint(toolkit.NetworkAllowlist()) != "[api.openai.com *.github.com]" {
		t.Errorf("%s %s %v", toolkit.Name(), toolkit.Version(), toolkit.NetworkAllowlist())
	}
	for name, want := range map[string]string{
		"allowed-packages.yaml": "",
		"research-agent.yaml":   "rules:",
		"sandbox-config.yaml":   "credentials.secret_scanning",
		"data-analysis.yaml":    "credentials.secret_scanning",
	} {
		var keys []string
		for _, note := range example(t, name).Notes() {
			key, _, _ := strings.Cut(note, " ")
			keys = append(keys, key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: not enforced are %q, want %q", name, got, want)
		}
	}
}

// TestCheckExplainsEveryLine: each line of an example that sets something has
// an explanation.
func TestCheckExplainsEveryLine(t *testing.T) {
	for name, data := range examples(t) {
		explained := map[int]bool{}
		for _, e := range example(t, name).Check() {
			explained[e.Line] = true
			if e.Meaning == "" || e.Key == "" {
				t.Errorf("%s: %+v", name, e)
			}
		}
		element := 1000 // indent of the list element that the line is in
		for i, line := range strings.Split(string(data), "\n") {
			code, _, _ := strings.Cut(line, " #")
			key := strings.TrimSpace(code)
			if key == "" || key[0] == '#' || strings.HasSuffix(key, ":") {
				continue
			}
			indent := len(line) - len(strings.TrimLeft(line, " "))
			if indent > element {
				continue // explained where the element begins
			}
			if element = 1000; key[0] == '-' {
				element = indent
				if !strings.Contains(key, "name:") {
					continue // a plain element is explained with its list
				}
			}
			if !explained[i+1] {
				t.Errorf("%s:%d: no explanation of %q", name, i+1, line)
			}
		}
	}
}
