package e2e

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what scripts can say beyond testscript's own words.
func commands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"normalise": normalise,
		"daemonpid": daemonPID,
		"killdaemon": func(ts *testscript.TestScript, _ bool, _ []string) {
			ts.Check(exec.Command("kill", "-9", ts.Getenv("DAEMON_PID")).Run())
		},
	}
}

// normalise FILE... rewrites files in place: upstream hosts become UPSTREAM,
// ids, digests, times and sizes become what their kind is called, so that the
// rest can be compared with a golden file.
func normalise(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: normalise FILE...")
	}
	hosts := upstreamHosts(ts)
	for _, name := range args {
		path := ts.MkAbs(name)
		data, err := os.ReadFile(path)
		ts.Check(err)
		text := string(data)
		for _, h := range hosts {
			text = strings.ReplaceAll(text, h, "UPSTREAM")
		}
		for _, r := range []struct{ pattern, with string }{
			{`request [a-z0-9]{8}`, "request ID"},
			{`\b(sb|run|cmd)-[0-9a-f]{12}\b`, "$1-ID"},
			{`\b[0-9a-f]{64}\b`, "SHA256"},
			{`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*Z?`, "TIME"},
		} {
			text = regexp.MustCompile(r.pattern).ReplaceAllString(text, r.with)
		}
		ts.Check(os.WriteFile(path, []byte(text), 0o600))
	}
}

// upstreamHosts asks the installation which hosts it answers for.
func upstreamHosts(ts *testscript.TestScript) []string {
	files, err := filepath.Glob(filepath.Join(ts.Getenv("COFFERDAM_STATE"), "upstreams", "*"))
	ts.Check(err)
	seen := map[string]bool{}
	var hosts []string
	for _, f := range files {
		data, err := os.ReadFile(f)
		ts.Check(err)
		for _, m := range regexp.MustCompile(`"(https?://[^"]+|[a-z0-9.-]+\.[a-z]{2,})"`).FindAllStringSubmatch(string(data), -1) {
			host := m[1]
			if u, err := url.Parse(host); err == nil && u.Host != "" {
				host = u.Host
			}
			if !seen[host] {
				seen[host] = true
				hosts = append(hosts, host)
			}
		}
	}
	return hosts
}

// daemonPID sets DAEMON_PID to the daemon of the script's installation.
func daemonPID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: daemonpid")
	}
	cmd := exec.Command("cofferdam", "version", "--json")
	cmd.Path = filepath.Join(ts.Getenv("REPO"), "bin", "cofferdam")
	cmd.Env = append(os.Environ(), "COFFERDAM_STATE="+ts.Getenv("COFFERDAM_STATE"), "COFFERDAM_RUNTIME="+ts.Getenv("COFFERDAM_RUNTIME"))
	out, err := cmd.Output()
	ts.Check(err)
	m := regexp.MustCompile(`"pid":\s*(\d+)`).FindSubmatch(out)
	if m == nil {
		ts.Fatalf("no daemon runs: %s", out)
	}
	ts.Setenv("DAEMON_PID", string(m[1]))
}
