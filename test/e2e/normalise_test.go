package e2e

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// upstreamFile is what an installation keeps of an upstream that it discovered.
type upstreamFile struct {
	Config struct {
		Ecosystem string   `json:"ecosystem"`
		Index     string   `json:"index"`
		Log       string   `json:"log"`
		FileHosts []string `json:"file_hosts"`
	} `json:"config"`
}

// discovered reads the installation's upstreams; there is at least one.
func discovered(ts *testscript.TestScript) []upstreamFile {
	files, err := filepath.Glob(stateFile(ts, "upstreams", "*.json"))
	ts.Check(err)
	found := []upstreamFile{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		ts.Check(err)
		var u upstreamFile
		ts.Check(json.Unmarshal(data, &u))
		found = append(found, u)
	}
	if len(found) == 0 {
		ts.Fatalf("the installation has discovered no upstream yet: run something first")
	}
	return found
}

// upstreamHosts are all hosts that the installation answers for, the longest
// first.
func upstreamHosts(ts *testscript.TestScript) []string {
	var hosts []string
	for _, u := range discovered(ts) {
		index, err := url.Parse(u.Config.Index)
		ts.Check(err)
		hosts = append(hosts, index.Host, index.Hostname())
		hosts = append(hosts, u.Config.FileHosts...)
		if u.Config.Log != "" {
			hosts = append(hosts, u.Config.Log)
		}
	}
	slices.SortFunc(hosts, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(hosts)
}

// normalise FILE... rewrites files in place: upstream hosts become UPSTREAM;
// ids, digests, times and what moves with the registry become what their kind
// is called, so that the rest can be compared with a golden file.
func normalise(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: normalise FILE...")
	}
	hosts := upstreamHosts(ts)
	for _, name := range args {
		text := ts.ReadFile(name)
		for _, h := range hosts {
			text = strings.ReplaceAll(text, h, "UPSTREAM")
		}
		for _, r := range moving() {
			text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
		}
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

type replacement struct{ pattern, with string }

// moving is what differs from run to run, from registry to registry, or with
// the releases that are made while this is read.
func moving() []replacement {
	return []replacement{
		{`https?://UPSTREAM/\S*?/([^/\s]+\.(whl|tar\.gz|zip|tgz))`, "https://UPSTREAM/.../$1"},
		{`https?://UPSTREAM/\S*simple\b`, "https://UPSTREAM/simple"},
		{`(request(?:_id"?)?:? +"?)[a-z0-9]{8}\b`, "${1}ID"},
		{`\b(sb|run|cmd)-[0-9a-f]{12}\b`, "$1-ID"},
		{`\b[0-9a-f]{64}\b`, "SHA256"},
		{`0x[0-9a-f]{6,}`, "ADDRESS"},
		{`\bin \d+(\.\d+)?m?s\b`, "in TIME"},
		{`pip-req-build-\w+`, "pip-req-build-ID"},
		{`(?m)^\d\d:\d\d:\d\dZ`, "TIME"},
		{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*Z?`, "TIME"},
		{`\b(\S+) \.\. (\S+)`, "OLDEST .. NEWEST"},
		{`\(\d+ versions, \S+ to \S+\)`, "(N versions, OLDEST to NEWEST)"},
		{`(versions: )\S+, (\S+, )+[^\s)]+`, "${1}MANY"},
		{`\(requires-python:[^)]*\)`, "(requires-python)"},
		{`(?m)^Progress: resolved .*\n`, ""},
		{`_logs/\S+\.log`, "_logs/LOG"},
		{`(?m)^    at .*\(.*\)\n|^    at .*:\d+:\d+\n`, ""},
		{`/home/agent/\d+/project`, "/home/agent/N/project"},
		{`(/\.tools/pnpm/\S+_tmp)_[\d_]+`, "${1}_ID"},
		{`/pnpm/dlx/\w+/[\w-]+`, "/pnpm/dlx/ID"},
		{`sha512-[A-Za-z0-9+/]{86}==`, "sha512-DIGEST"},
		{`Published at [\d/]+`, "Published at DATE"},
		{`@jsr:registry=\S+`, "@jsr:registry=https://REGISTRY/"},
		{`(?m)[ \t]+$`, ""},
		{`(?m)(\S) {3,}`, "$1  "},
	}
}
