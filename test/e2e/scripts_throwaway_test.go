//go:build long

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// hostileScript is a package's install script. It tries to get out and at what is the run's,
// and writes down what it got; then it does what its package is called for.
const hostileScript = `
const fs = require('fs'), net = require('net'), { spawn } = require('child_process');
const does = JSON.parse(fs.readFileSync('package.json')).name, got = [];
if (process.env.RUNS_SECRET) got.push('environment');
for (const path of ['/home/agent/marker', '/workspace/marker']) {
  try { fs.readFileSync(path); got.push('files'); } catch {}
}
for (const path of ['/usr/bin/evil', '/etc/evil']) {
  try { fs.writeFileSync(path, ''); got.push('system'); } catch {}
}
const reach = (host) => new Promise((done) => {
  const s = net.connect(80, host, () => { got.push('network'); s.destroy(); done(); });
  s.on('error', done);
  s.setTimeout(3000, () => { s.destroy(); done(); });
});
const change = (edit) => {
  const own = JSON.parse(fs.readFileSync('package.json'));
  edit(own);
  fs.writeFileSync('package.json', JSON.stringify(own));
};
(async () => {
  for (const host of ['reachable.example', '192.0.2.1']) await reach(host);
  fs.writeFileSync('got.json', JSON.stringify(got));
  switch (does) {
  case 'grows': change((own) => { own.dependencies = { evil: '1.0.0' }; }); break;
  case 'renames': change((own) => { own.name = 'wanted'; }); break;
  case 'ages': change((own) => { own.version = '9.9.9'; }); break;
  case 'again': change((own) => { own.scripts = { preinstall: 'touch again' }; }); fs.writeFileSync('binding.gyp', '{}'); break;
  case 'links': fs.symlinkSync('/etc/passwd', 'linked'); fs.writeFileSync('tool', '#!/bin/sh\n'); fs.chmodSync('tool', 0o6755); break;
  case 'doubles': fs.writeFileSync('/var/tmp/built/other.tgz', 'x'); break;
  case 'fails': console.log('\x1b[31mthis package needs a compiler'); process.exit(3);
  case 'forks': for (let i = 0; i < 20; i++) spawn('sleep', ['100000'], { detached: true, stdio: 'ignore' }).unref(); break;
  case 'fills': { const f = fs.openSync('big', 'w'), piece = Buffer.alloc(1 << 20, 7); for (;;) fs.writeSync(f, piece); }
  case 'hangs': setInterval(() => {}, 1000); break;
  }
})();
`

// nodeUpstream is a configuration with one registry of npm's protocol.
func nodeUpstream(t *testing.T, l *liar.Server, name string) string {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, l.CAPEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("upstreams:\n  - ecosystem: node\n    index: %s\n    address: %s\n    ca_file: %s\n", l.URL(name, "/"), strings.Replace(l.Host(name), name, "127.0.0.1", 1), ca)
}

// newScripts is an installation whose registry has a package for each thing that a hostile
// script does.
func newScripts(t *testing.T) *installation {
	t.Helper()
	const host = "registry.example"
	l := liar.New(t, host)
	for _, name := range []string{"quiet", "grows", "renames", "ages", "again", "links", "doubles", "fails", "forks", "fills", "hangs"} {
		r := npmtest.Pack(t, name, "1.0.0", map[string]any{"scripts": map[string]string{"postinstall": "node make.js"}}, [2]string{"make.js", hostileScript})
		r.URL = l.URL(host, r.Path())
		l.Script(host+r.Path(), liar.Body("application/octet-stream", r.Bytes))
		l.Script(host+"/"+name, liar.Body(npmtest.Type, npmtest.Packument(t, name, nil, r)))
	}
	return start(t, nodeUpstream(t, l, host))
}

// scripted is a sandbox under a policy, with a file of its own.
func (in *installation) scripted(word string) api.Sandbox {
	in.t.Helper()
	env := in.create("debian", "packages: { default: allow, install_scripts: "+word+" }\ndefaults: { max_disk_mb: 256 }\n")
	if got := in.run(env, "sh", "-c", "echo x > /home/agent/marker && mkdir /tmp/p && echo '{}' > /tmp/p/package.json"); got.Exit.Code != 0 {
		in.t.Fatalf("the run has no files of its own: %+v", got)
	}
	return env
}

func npmInstall(name string) []string {
	return []string{"sh", "-c", "cd /tmp/p && RUNS_SECRET=s3cret npm install --silent --no-audit --foreground-scripts --loglevel=error " + name}
}

// workshops are the sandboxes in which something is made.
func (in *installation) workshops() []string {
	in.t.Helper()
	all, err := in.Client.Sandboxes(in.t.Context())
	if err != nil {
		in.t.Fatal(err)
	}
	var ids []string
	for _, s := range all {
		if strings.HasPrefix(s.Run, "build-") {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// TestHostileInstallScripts: what an install script does stays in its workshop, and what it
// leaves is looked into. The control is the same package under install_scripts: allow, whose
// script runs where the run's own things are.
func TestHostileInstallScripts(t *testing.T) {
	t.Parallel()
	in := newScripts(t)
	gets := func(env api.Sandbox) string {
		if got := in.run(env, npmInstall("quiet")...); got.Exit.Code != 0 {
			t.Fatalf("npm ended with %+v", got)
		}
		return strings.TrimSpace(in.run(env, "cat", "/tmp/p/node_modules/quiet/got.json").Stdout)
	}
	if got := gets(in.scripted("allow")); !strings.Contains(got, "environment") || !strings.Contains(got, "files") {
		t.Fatalf("INCONCLUSIVE: a script in the run gets %s", got)
	}
	env := in.scripted("throwaway")
	if got := gets(env); got != "[]" {
		t.Errorf("a script apart got %s", got)
	}
	for name, says := range map[string]string{
		"grows": "requires evil", "renames": "is about", "ages": "9.9.9", "doubles": "several or none",
		"fails": "this package needs a compiler", "fills": "its install scripts failed",
	} {
		got := in.run(env, npmInstall(name)...)
		if got.Exit.Code == 0 || !strings.Contains(got.Stdout+got.Stderr, says) || strings.Contains(got.Stdout+got.Stderr, "\x1b[31mthis") {
			t.Errorf("%s: npm ended with %+v", name, got)
		}
		if got := in.run(env, "ls", "/tmp/p/node_modules/"+name+"/index.js"); got.Exit.Code == 0 {
			t.Errorf("%s: something was installed", name)
		}
	}
	for _, name := range []string{"again", "links", "forks"} {
		if got := in.run(env, npmInstall(name)...); got.Exit.Code != 0 {
			t.Errorf("%s: npm ended with %+v", name, got)
		}
		if got := in.run(env, "cat", "/tmp/p/node_modules/"+name+"/got.json"); got.Stdout != "[]" {
			t.Errorf("%s: it got %+v", name, got)
		}
	}
	left := in.run(env, "sh", "-c", "cd /tmp/p/node_modules && ls again/again again/binding.gyp links/linked; find . -type l -o -perm /6000; true")
	if strings.TrimSpace(left.Stdout) != "" {
		t.Errorf("what should not is there: %s", left.Stdout)
	}
	if ids := in.workshops(); len(ids) > 0 {
		t.Errorf("the workshops %v are left", ids)
	}
}

// TestAHangingInstallScript ends with the run that wants what comes of it.
func TestAHangingInstallScript(t *testing.T) {
	t.Parallel()
	in := newScripts(t)
	env := in.scripted("throwaway")
	if _, err := in.Client.StartCommand(t.Context(), env.ID, api.StartCommand{Argv: npmInstall("hangs")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	until := func(what string, met func() bool) {
		t.Helper()
		for tick := time.NewTicker(200 * time.Millisecond); !met(); {
			select {
			case <-ctx.Done():
				t.Fatalf("still not: %s", what)
			case <-tick.C:
			}
		}
	}
	until("a workshop", func() bool { return len(in.workshops()) == 1 })
	if err := in.Client.DestroySandbox(t.Context(), env.ID); err != nil {
		t.Fatal(err)
	}
	until("no workshop", func() bool { return len(in.workshops()) == 0 })
}
