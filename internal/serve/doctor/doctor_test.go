package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/advisory"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/landlock"
	"github.com/cofferdam-dev/cofferdam/internal/kit/confine/seccomp"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/discover"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/template"
)

// put writes a file of an imagined host.
func put(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// host is an imagined host in good order.
func host(t *testing.T) Inputs {
	t.Helper()
	root := t.TempDir()
	put(t, filepath.Join(root, "proc/sys/kernel/osrelease"), "6.1.0-38-amd64\n", 0o600)
	put(t, filepath.Join(root, "proc/sys/user/max_user_namespaces"), "96365\n", 0o600)
	put(t, filepath.Join(root, "sys/fs/cgroup/cgroup.controllers"), "cpu memory pids\n", 0o600)
	state := filepath.Join(root, "state")
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	return Inputs{Root: root, State: state, UID: os.Geteuid(), GatewayUID: 1879200001}
}

func find(t *testing.T, r Report, name string) Check {
	t.Helper()
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, r.Checks)
	return Check{}
}

func TestHost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		check  string
		change func(t *testing.T, in *Inputs)
		want   Status
	}{
		"a good kernel":      {"kernel", func(*testing.T, *Inputs) {}, OK},
		"an old kernel":      {"kernel", set("proc/sys/kernel/osrelease", "4.19.0-27-amd64"), Fail},
		"an odd kernel":      {"kernel", set("proc/sys/kernel/osrelease", "unknown"), Warn},
		"namespaces":         {"user namespaces", func(*testing.T, *Inputs) {}, OK},
		"namespaces off":     {"user namespaces", set("proc/sys/user/max_user_namespaces", "0"), Fail},
		"AppArmor, user":     {"user namespaces", asUser(set("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")), Fail},
		"AppArmor, root":     {"user namespaces", asRoot(set("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")), OK},
		"Debian's knob":      {"user namespaces", asUser(set("proc/sys/kernel/unprivileged_userns_clone", "0")), Fail},
		"cgroup 2":           {"control groups", func(*testing.T, *Inputs) {}, OK},
		"no cgroups":         {"control groups", func(_ *testing.T, in *Inputs) { _ = os.RemoveAll(filepath.Join(in.Root, "sys")) }, Warn},
		"a good state":       {"state directory", func(*testing.T, *Inputs) {}, OK},
		"no state yet":       {"state directory", func(_ *testing.T, in *Inputs) { in.State += "/new" }, OK},
		"an open state":      {"state directory", func(_ *testing.T, in *Inputs) { _ = os.Chmod(in.State, 0o770) }, Fail},
		"another's state":    {"state directory", func(_ *testing.T, in *Inputs) { in.UID += 5 }, Fail},
		"a file as state":    {"state directory", func(t *testing.T, in *Inputs) { t.Helper(); in.State = put(t, in.State+"/f", "", 0o600) }, Fail},
		"disk":               {"disk space", func(*testing.T, *Inputs) {}, OK},
		"no advisories":      {"advisories", advised(func(*testing.T, string) {}), Warn},
		"odd advisories":     {"advisories", advised(func(t *testing.T, dir string) { t.Helper(); put(t, filepath.Join(dir, "manifest"), "odd", 0o600) }), Fail},
		"vulnerabilities":    {"vulnerabilities", advised(func(*testing.T, string) {}), Warn},
		"nothing published":  {"audit log", logged(false, ""), Warn},
		"not published yet":  {"audit log", logged(true, ""), OK},
		"published":          {"audit log", logged(true, `{"targets":[{"name":"t","size":0,"time":"2026-01-01T00:00:00Z"}]}`), OK},
		"published once":     {"audit log", logged(false, `{"targets":[{"name":"t","size":0,"time":"2026-01-01T00:00:00Z"}]}`), Warn},
		"publishing fails":   {"audit log", logged(true, `{"targets":[{"name":"t","failure":"refused","since":"2026-01-01T00:00:00Z"}]}`), Warn},
		"an odd publication": {"audit log", logged(true, "odd"), Warn},
		"gateway":            {"gateway user", asRoot(func(*testing.T, *Inputs) {}), OK},
		"gateway is root":    {"gateway user", asRoot(func(_ *testing.T, in *Inputs) { in.GatewayUID = 0 }), Fail},
		"gateway is me":      {"gateway user", asUser(func(*testing.T, *Inputs) {}), Warn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := host(t)
			c.change(t, &in)
			got := find(t, Examine(t.Context(), in), c.check)
			if got.Status != c.want {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if got.Sentence == "" || (got.Status == Fail && got.HowToFix == "") {
				t.Errorf("says too little: %+v", got)
			}
		})
	}
}

func set(path, text string) func(*testing.T, *Inputs) {
	return func(t *testing.T, in *Inputs) { t.Helper(); put(t, filepath.Join(in.Root, path), text+"\n", 0o600) }
}

func asUser(change func(*testing.T, *Inputs)) func(*testing.T, *Inputs) {
	return func(t *testing.T, in *Inputs) { t.Helper(); change(t, in); in.UID = 1000 }
}

func asRoot(change func(*testing.T, *Inputs)) func(*testing.T, *Inputs) {
	return func(t *testing.T, in *Inputs) { t.Helper(); in.UID = 0; change(t, in) }
}

func advised(change func(t *testing.T, dir string)) func(*testing.T, *Inputs) {
	return func(t *testing.T, in *Inputs) {
		t.Helper()
		dir := filepath.Join(in.State, "advisory")
		change(t, dir)
		in.Advisories = advisory.Open(dir, advisory.Options{})
	}
}

// logged is a host with a log, of which checkpoints are published or not; published is what is there of that.
func logged(publishes bool, published string) func(*testing.T, *Inputs) {
	return func(t *testing.T, in *Inputs) {
		t.Helper()
		in.AuditLog, in.Publishes = filepath.Join(in.State, "audit"), publishes
		put(t, filepath.Join(in.AuditLog, "checkpoints"), "", 0o600)
		if published != "" {
			put(t, filepath.Join(in.AuditLog, audit.PublishedName), published, 0o600)
		}
	}
}

// TestVulnerabilitiesOfEachEcosystem: those of which none is imported are named, since a policy
// that weighs them refuses every package of these.
func TestVulnerabilitiesOfEachEcosystem(t *testing.T) {
	t.Parallel()
	in := host(t)
	db := advisory.Open(filepath.Join(in.State, "advisory"), advisory.Options{})
	in.Advisories = db
	record := func(ecosystem, name string) {
		path := put(t, filepath.Join(t.TempDir(), "a.json"), `{"id":"GHSA-1","affected":[{"package":{"ecosystem":"`+ecosystem+`","name":"`+name+`"},"versions":["1.0.0"]}]}`, 0o600)
		if _, err := db.Import(t.Context(), advisory.Job{Path: path, Label: name}, func(advisory.Progress) {}); err != nil {
			t.Fatal(err)
		}
	}
	record("PyPI", "a")
	record("crates.io", "b")
	got := find(t, Examine(t.Context(), in), "vulnerabilities")
	if got.Status != Warn || !strings.Contains(got.Sentence, "is imported for node, go, so") {
		t.Errorf("of two: %+v", got)
	}
	record("npm", "c")
	record("Go", "example.com")
	if got = find(t, Examine(t.Context(), in), "vulnerabilities"); got.Status != OK || !strings.Contains(got.Sentence, "4 known") {
		t.Errorf("of all: %+v", got)
	}
}

func TestRunsc(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		mode   os.FileMode
		want   Status
	}{
		"safe":          {"#!/bin/sh\necho runsc version release-20261012.0\n", 0o700, OK},
		"vulnerable":    {"#!/bin/sh\necho runsc version release-20260824.0\n", 0o700, Fail},
		"unknown":       {"#!/bin/sh\necho runsc version VERSION_MISSING\n", 0o700, Warn},
		"does not run":  {"#!/bin/sh\necho no such platform >&2; exit 3\n", 0o700, Fail},
		"not a program": {"text", 0o600, Fail},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := host(t)
			in.Runsc = put(t, filepath.Join(in.Root, "runsc"), c.script, c.mode)
			if got := find(t, Examine(t.Context(), in), "runsc"); got.Status != c.want {
				t.Errorf("%+v", got)
			}
		})
	}
	in := host(t)
	in.Runsc = "/nonexistent/runsc"
	if got := find(t, Examine(t.Context(), in), "runsc"); got.Status != Fail || !strings.Contains(got.HowToFix, "make build") {
		t.Errorf("%+v", got)
	}
}

func TestVersionDates(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v0.0.0-20260905035102-160fafc42237": "20260905", "runsc version release-20260527.0": "20260527",
		"runsc version release-20260527.0-12-gabc": "20260527", "VERSION_MISSING": "", "": "",
	} {
		got := versionDate.FindStringSubmatch(version)
		if (got == nil) != (want == "") || (got != nil && got[1] != want) {
			t.Errorf("%q: %v", version, got)
		}
	}
}

// liar is an engine with whatever abilities a test needs it to claim.
type liar struct {
	engine.Engine

	caps engine.Capabilities
	err  error
}

func (liar) Name() string { return "liar" }

func (l liar) Capabilities(context.Context) (engine.Capabilities, error) { return l.caps, l.err }

func TestEngine(t *testing.T) {
	t.Parallel()
	in := host(t)
	in.Engines = []engine.Engine{liar{caps: engine.Capabilities{
		Enforces: []engine.Control{engine.ControlNoNetwork}, Rootless: true,
		Missing: map[engine.Control]string{engine.ControlMemory: "no cgroup is delegated; run under systemd-run --user --scope -p Delegate=yes"},
	}}}
	r := Examine(t.Context(), in)
	text := &bytes.Buffer{}
	if err := r.WriteText(text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"enforces no-network", "no memory: no cgroup is delegated", "without root"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("missing %q in\n%s", want, text)
		}
	}
	in.DefaultEngine, in.Engines = "another", []engine.Engine{liar{caps: engine.Capabilities{Wall: engine.WallEmulated, By: "this (that is not used: there is none)"}}}
	if got := find(t, Examine(t.Context(), in), "engine liar").Sentence; !strings.Contains(got, "wall: emulated-machine, by this (that is not used: there is none);") {
		t.Errorf("what makes the wall: %s", got)
	}
	in.DefaultEngine = ""
	if !r.Healthy() {
		t.Errorf("warnings are no failure:\n%s", text)
	}
	in.Engines = []engine.Engine{liar{err: fault.New(fault.ErrUnavailable, "no namespaces here")}}
	r = Examine(t.Context(), in)
	if r.Healthy() || find(t, r, "engine liar").Status != Fail {
		t.Errorf("%+v", r)
	}
}

// TestIsolation: what auto takes, and why hardware is refused.
func TestIsolation(t *testing.T) {
	t.Parallel()
	wall := func(w engine.Wall, why string) engine.Engine {
		return liar{caps: engine.Capabilities{Wall: w, NoHardware: why}}
	}
	for name, c := range map[string]struct {
		engines []engine.Engine
		want    string
	}{
		"none can run": {[]engine.Engine{liar{err: fault.New(fault.ErrUnavailable, "no namespaces here")}}, "no engine here has a wall"},
		"a kernel": {
			[]engine.Engine{wall(engine.WallContainer, ""), wall(engine.WallUserKernel, ""), wall(engine.WallEmulated, "KVM is not here")},
			"auto takes the engine liar, whose wall is of the kind user-space-kernel; hardware is refused (liar: KVM is not here)",
		},
		"hardware": {[]engine.Engine{wall(engine.WallHardware, ""), wall(engine.WallUserKernel, "")}, "auto and hardware take the engine liar"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := host(t)
			in.Engines = c.engines
			if got := find(t, Examine(t.Context(), in), "isolation"); got.Status != OK || !strings.Contains(got.Sentence, c.want) {
				t.Errorf("%+v, want it to say %q", got, c.want)
			}
		})
	}
}

func TestUpstreamsAreRedacted(t *testing.T) {
	t.Parallel()
	in := host(t)
	in.Upstreams = func(context.Context) (discover.Found, error) {
		return discover.Found{Upstreams: []upstream.Config{{
			Ecosystem: "python", Index: "https://index.example/simple/", Username: "ci", Password: "hunter2",
			Proxy: "http://p:hunter2@proxy.example:3128", CAPEM: []byte("roots"), Source: "pip's configuration",
		}, {Ecosystem: "node", Index: "https://npm.example/", Token: "hunter2"}}}, nil
	}
	r := Examine(t.Context(), in)
	raw, err := json.Marshal(r)
	if err != nil || strings.Contains(string(raw), "hunter2") || !strings.Contains(string(raw), "index.example") || !strings.Contains(string(raw), "with credentials") {
		t.Errorf("%s %v", raw, err)
	}
	in.Upstreams = func(context.Context) (discover.Found, error) {
		return discover.Found{Missing: []discover.Missing{{Ecosystem: "go", Why: errors.New("no go here")}}}, nil
	}
	if got := find(t, Examine(t.Context(), in), "registry"); got.Status != Warn || !strings.Contains(got.Sentence, "go: none was found") {
		t.Errorf("%+v", got)
	}
	in.Upstreams = func(context.Context) (discover.Found, error) { return discover.Found{}, errors.New("a wrong entry") }
	if got := find(t, Examine(t.Context(), in), "registry"); got.Status != Fail {
		t.Errorf("%+v", got)
	}
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	in := host(t)
	in.Templates = template.NewStore(filepath.Join(in.State, "templates"), template.Options{})
	r := Examine(t.Context(), in)
	if got := find(t, r, "template host"); got.Status != OK || !strings.Contains(got.Sentence, "sha256:") {
		t.Errorf("%+v", got)
	}
	if got := find(t, r, "template debian"); got.Status != OK || !strings.Contains(got.Sentence, "template build debian") {
		t.Errorf("%+v", got)
	}
	in.DefaultTemplate = template.NameDebian
	if got := find(t, Examine(t.Context(), in), "template debian"); got.Status != Warn {
		t.Errorf("%+v", got)
	}
	in.Env = []string{"HOME=/home/me", "PATH=/home/me/.cargo/bin:/usr/bin"}
	if got := find(t, Examine(t.Context(), in), "tools of the host"); !strings.Contains(got.Sentence, "~/.cargo/bin") {
		t.Errorf("%+v", got)
	}
}

func TestTextStaysOnItsLine(t *testing.T) {
	t.Parallel()
	out := &bytes.Buffer{}
	if err := (Report{[]Check{failCheck("x", "do\nthis", "a\nb\x1b[31m")}}).WriteText(out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "\n") != 2 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q", out)
	}
}

// TestSystemCallsOfTheGateway: a kernel without filters is told from one that refuses them.
func TestSystemCallsOfTheGateway(t *testing.T) {
	t.Parallel()
	for want, err := range map[Status]error{OK: nil, Warn: fmt.Errorf("here: %w", seccomp.ErrMissing), Fail: errors.New("not permitted")} {
		if got := systemCalls("gateway network", err); got.Status != want || (want != OK && got.HowToFix == "") {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

// TestFilesOfTheGateway: what is missing is said, and worse without root.
func TestFilesOfTheGateway(t *testing.T) {
	t.Parallel()
	for _, uid := range []int{0, 1000} {
		for want, err := range map[Status]error{OK: nil, Warn: fmt.Errorf("here: %w", landlock.ErrMissing), Fail: errors.New("not permitted")} {
			if got := filesOf("gateway files", uid, err); got.Status != want || (want != OK && got.HowToFix == "") {
				t.Errorf("user %d, %v: %+v", uid, err, got)
			}
		}
	}
}
