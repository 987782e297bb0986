package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// bypass is one way around a package gateway, tried by a real client or by hand in
// a real sandbox, with a package of its own. number is its row of
// docs/security-cases.md.
type bypass struct {
	number, name string
	// script is for a shell, with PKG, FILE (the artifact's path), HOST (the
	// registry), EVIL (a host that is none) and what else bypassRegistry.env gives.
	script string
	// gets tells that with a policy that allows the package this bypass gets it: the
	// control. Bypasses that lead past the gateway get nothing under any policy.
	gets bool
}

// bypassRun is a family's bypasses on one installation.
type bypassRun struct {
	*installation
	registry *bypassRegistry
	family   bypassFamily
}

const (
	allowingPolicy = "packages: { default: allow, similar_names: allow, install_scripts: allow }\n"
	refusingPolicy = `packages: { default: deny }
allowed_packages:
  python: [ { name: wanted } ]
  node: [ { name: wanted }, { name: helper } ]
  go: [ { name: wanted.example/lib } ]
`
)

func tryBypasses(t *testing.T, family string) {
	t.Helper()
	registry := newBypassRegistry(t)
	i := slices.IndexFunc(bypassFamilies(), func(f bypassFamily) bool { return f.name == family })
	w := &bypassRun{installation: start(t, registry.config(t)), registry: registry, family: bypassFamilies()[i]}
	w.control()
	w.attack()
}

// control tries the bypasses that get something under a policy that allows it.
func (w *bypassRun) control() {
	w.t.Helper()
	s := w.open(allowingPolicy)
	said := map[string]string{}
	for i, bypass := range w.family.bypasses {
		if bypass.gets {
			said[bypass.name] = s.try(i, "yes")
		}
	}
	got, records := s.collect(), s.records()
	for i, bypass := range w.family.bypasses {
		p := w.registry.packages[w.family.name][i]
		if bypass.gets && (!got[p.name] || !served(records, p.name)) {
			w.t.Errorf("INCONCLUSIVE: %s (%s) does not get what a policy allows (found %v, served %v); the client says:\n%s",
				bypass.name, p.name, got[p.name], served(records, p.name), said[bypass.name])
		}
	}
}

// attack tries all bypasses under a policy that refuses it.
func (w *bypassRun) attack() {
	w.t.Helper()
	s := w.open(refusingPolicy)
	said := make([]string, len(w.family.bypasses))
	for i := range w.family.bypasses {
		said[i] = s.try(i, "")
	}
	got, records := s.collect(), s.records()
	for i, bypass := range w.family.bypasses {
		p := w.registry.packages[w.family.name][i]
		if got[p.name] || served(records, p.name) {
			w.t.Errorf("REACHED: by %s (%s) a refused package came in (found %v, on record %+v); the client says:\n%s",
				bypass.name, p.name, got[p.name], slices.DeleteFunc(slices.Clone(records), func(r audit.Record) bool { return !isServing(r, p.name) }), said[i])
		}
		if !refused(records, p) {
			w.t.Errorf("INCONCLUSIVE: %s (%s) left no refusal on record; the client says:\n%s", bypass.name, p.name, said[i])
		}
	}
	if !served(records, w.family.wanted) {
		w.t.Errorf("INCONCLUSIVE: not even %s came in", w.family.wanted)
	}
}

// bypassSandbox is a sandbox of one family and one policy.
type bypassSandbox struct {
	*bypassRun
	sandbox api.Sandbox
	out     string // on the host: what the sandbox can write for us to see
	seen    map[string]bool
}

func (w *bypassRun) open(policy string) *bypassSandbox {
	w.t.Helper()
	out := w.t.TempDir()
	if err := os.Chmod(out, 0o777); err != nil { // the sandbox's user writes it
		w.t.Fatal(err)
	}
	scripts, err := filepath.Abs(filepath.Join("testdata", "bypasses"))
	if err != nil {
		w.t.Fatal(err)
	}
	sb, err := w.Client.CreateSandbox(w.t.Context(), api.CreateSandbox{
		Template: "debian", Policy: api.Policy{Document: []byte(policy)}, Linger: true,
		Mounts: []api.Mount{{Source: out, Destination: "/out", ReadWrite: true}, {Source: scripts, Destination: "/bypasses"}},
	})
	if err != nil {
		w.t.Fatalf("create: %v\n%s", err, w.log())
	}
	s := &bypassSandbox{bypassRun: w, sandbox: sb, out: out, seen: map[string]bool{}}
	s.command("touch /tmp/start; mkdir -p /tmp/wanted; cd /tmp/wanted; "+w.family.before, w.registry.common(w.family.name))
	return s
}

// try runs one bypass and gives what was printed, in which the package is looked
// for, too. control is the variable CONTROL of the scripts.
func (s *bypassSandbox) try(i int, control string) string {
	s.t.Helper()
	p := s.registry.packages[s.family.name][i]
	env := s.registry.env(s.family.name, p)
	env["CONTROL"] = control
	said := s.command("mkdir -p /tmp/w/$PKG && cd /tmp/w/$PKG && {\n"+s.family.bypasses[i].script+"\n}", env)
	s.look([]byte(said))
	return said
}

func (s *bypassSandbox) command(script string, env map[string]string) string {
	s.t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		fmt.Fprintf(&b, "export %s='%s'\n", name, env[name])
	}
	r := s.run(s.sandbox, "sh", "-c", b.String()+script)
	return r.Stdout + r.Stderr
}

// collect has the sandbox copy whatever changed since its start, and says of
// which packages something is among it.
func (s *bypassSandbox) collect() map[string]bool {
	s.t.Helper()
	said := s.command(`chmod -R u+w "$HOME" /tmp 2>/dev/null; find "$HOME" /tmp /var/tmp /dev/shm -xdev -type f -cnewer /tmp/start -exec cp --parents -t /out {} + && touch /out/copied`, nil)
	if _, err := os.Stat(filepath.Join(s.out, "copied")); err != nil {
		s.t.Errorf("INCONCLUSIVE: the sandbox's files were not copied: %s", said)
	}
	err := filepath.WalkDir(s.out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.look(data)
		s.look([]byte(path))
		return nil
	})
	if err != nil {
		s.t.Errorf("INCONCLUSIVE: the copied files can't be read: %v", err)
	}
	return s.seen
}

// look notes the packages of which data is the artifact or has the marker.
func (s *bypassSandbox) look(data []byte) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	for _, p := range s.registry.packages[s.family.name] {
		if p.digest == digest || bytes.Contains(data, []byte(p.marker)) {
			s.seen[p.name] = true
		}
	}
}

// records are what the log has of the run.
func (s *bypassSandbox) records() []audit.Record {
	s.t.Helper()
	var all []audit.Record
	for line, err := range s.Client.Records(s.t.Context(), client.RecordFilter{Run: s.sandbox.Run}) {
		if err != nil {
			s.t.Fatal(err)
		}
		var r audit.Record
		if err := json.Unmarshal(line, &r); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// served tells whether anything of a package was sent or found installed.
func served(records []audit.Record, name string) bool {
	return slices.ContainsFunc(records, func(r audit.Record) bool { return isServing(r, name) })
}

func isServing(r audit.Record, name string) bool {
	return r.Kind == audit.KindPackage && r.Package == name && (r.Outcome == audit.Served || r.Outcome == audit.Aborted || r.Outcome == audit.Installed)
}

// refused tells whether a package, or the host that only its bypass leads to, was.
func refused(records []audit.Record, p bypassPackage) bool {
	return slices.ContainsFunc(records, func(r audit.Record) bool {
		switch {
		case r.Kind == audit.KindNetwork:
			name := strings.TrimSuffix(r.Detail["name"], ".")
			return r.Outcome == audit.Blocked && (name == p.evil || strings.HasSuffix(name, "."+p.evil))
		case r.Kind == audit.KindPackage && r.Package == p.name:
			return r.Outcome == audit.Blocked || r.Outcome == audit.Withheld || r.Outcome == audit.Failed
		}
		return false
	})
}

// TestBypassesPython, TestBypassesNode and TestBypassesGo: a package that a policy
// refuses reaches the sandbox by no bypass. The sandboxes' word counts for nothing: after
// the runs the log has no record that it was served, whatever lies in the sandbox's home
// and temporary files has neither its digest nor its marker, and each attempt left a
// refusal on record. Before that another run, which may have the packages, gets them by
// the same scripts, so that the oracles are seen to see and every cache is warm.
//
// They take longest of all, each for itself. Of tests that run in parallel those declared
// last begin first, so nothing is declared after them.
func TestBypassesPython(t *testing.T) {
	t.Parallel()
	tryBypasses(t, "python")
}

func TestBypassesNode(t *testing.T) {
	t.Parallel()
	tryBypasses(t, "node")
}

func TestBypassesGo(t *testing.T) {
	t.Parallel()
	tryBypasses(t, "go")
}
