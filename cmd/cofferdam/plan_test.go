package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/plan"
)

func made() api.Plan {
	return api.Plan{Run: "r", Notes: []string{"the resolver also read \x1b[31msetuptools 80.0"}, Releases: []api.PlanRelease{
		{Ecosystem: "python", Name: "rich", Version: "13.7.1", Kind: "wheel", Size: 240_700, Published: "2024-02-28T10:00:00Z", Effect: "hold", Rule: "packages.default", Reason: "rich waits", Approval: "ap-rich22", Group: "apg-one222"},
		{Ecosystem: "python", Name: "mdurl", Version: "0.1.2", Depth: 1, Kind: "wheel", Size: 10_000, Effect: "hold", Rule: "packages.default", Reason: "mdurl waits", WantedBy: []string{"rich 13.7.1 requires mdurl ~=0.1", "x 1 requires mdurl"}, Approval: "ap-mdurl2", Group: "apg-one222"},
		{Ecosystem: "python", Name: "idna", Version: "3.4", Depth: 1, Kind: "wheel", Scripts: true, Published: "2026-11-20T10:00:00Z", Effect: "allow", Rule: "allowed_packages.python.idna", Reason: "idna is on the allowlist"},
		{Ecosystem: "python", Name: "six", Version: "1.16.0", Effect: "deny", Rule: "packages.sdist", Reason: "only wheels"},
	}}
}

func TestPlanTable(t *testing.T) {
	var b strings.Builder
	if err := writePlan(&b, made(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := `PACKAGE  VERSION  KIND   SIZE      AGE  SCRIPTS  VERDICT     RULE                          WANTED BY
rich     13.7.1   wheel  240.7 kB  2 y  -        would wait  packages.default              -
  mdurl  0.1.2    wheel  10.0 kB   -    -        would wait  packages.default              rich 13.7.1 requires mdurl ~=0.1 (and 1 more)
  idna   3.4      wheel  -         1 d  yes      allowed     allowed_packages.python.idna  -
six      1.16.0   -      -         -    -        refused     packages.sdist                -
rich 13.7.1, by packages.default: rich waits (and 1 more)
six 1.16.0, by packages.sdist: only wheels
note: the resolver also read \x1b[31msetuptools 80.0
4 packages, at least 250.7 kB: 1 allowed, 2 would wait for a person, 1 refused
an install now would fail: the policy refuses part of it
asked for: ap-rich22 ap-mdurl2
read them with: cofferdam approvals show ap-rich22
answer all with: cofferdam approvals approve --scope policy apg-one222 (or some, by their ids)
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPlanExit(t *testing.T) {
	for effects, want := range map[string]int{"": 0, "allow": 0, "allow hold": exitPlanned, "deny": exitPlanned, "allow error deny": exitFailure} {
		p := api.Plan{}
		for effect := range strings.FieldsSeq(effects) {
			p.Releases = append(p.Releases, api.PlanRelease{Effect: effect})
		}
		got := 0
		if err := judgePlan(p); err != nil {
			got = exitCode(err)
		}
		if got != want {
			t.Errorf("%q exits with %d, want %d", effects, got, want)
		}
	}
}

func TestProjectOf(t *testing.T) {
	mounts := []api.Mount{{Destination: "/project"}, {Destination: "/project/in"}, {Destination: "/data"}}
	for dir, want := range map[string]installer.Project{
		"": {}, "/home": {}, "/workspace": {}, "/project": {Top: "/project", Here: "."}, "/project/a/b": {Top: "/project", Here: "a/b"}, "/project/in/x": {Top: "/project/in", Here: "x"},
	} {
		if got := projectOf(api.CreateSandbox{Workdir: dir, Mounts: mounts}); got != want {
			t.Errorf("%q is in %+v, want %+v", dir, got, want)
		}
	}
}

func TestLockTarget(t *testing.T) {
	dir := t.TempDir()
	rewrite, err := plan.Of(all.Installers(), []string{"pip", "install", "rich"}, installer.Project{})
	if err != nil {
		t.Fatal(err)
	}
	resolver := rewrite.Resolver
	old := filepath.Join(dir, "old.txt")
	if err := os.WriteFile(old, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{"a folder": dir, "another format": "go.sum", "no folder": "none/lock.txt", "it exists": "old.txt"} {
		if _, err := newLockTarget(dir, bad, resolver, false); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	link := filepath.Join(dir, "link.txt")
	if err := os.Symlink("old.txt", link); err != nil {
		t.Fatal(err)
	}
	target, err := newLockTarget(dir, "link.txt", resolver, true)
	if err != nil || target.writeLockfile([]byte("new")) != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(old)
	if data, rerr := os.ReadFile(old); err != nil || rerr != nil || string(data) != "new" || info.Mode() != 0o640 {
		t.Errorf("%q, %v, %v %v", data, info.Mode(), err, rerr)
	}
	fresh, err := newLockTarget(dir, "new.txt", resolver, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := fresh.writeLockfile([]byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := fresh.writeLockfile([]byte("two")); !errors.Is(err, fs.ErrExist) { // somebody else's by now
		t.Errorf("a file that came meanwhile: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".cofferdam-*"))
	if data, rerr := os.ReadFile(filepath.Join(dir, "new.txt")); err != nil || rerr != nil || string(data) != "one" || len(left) > 0 {
		t.Errorf("%q, drafts %q, %v %v", data, left, err, rerr)
	}
}

func TestLastLines(t *testing.T) {
	h := &heard{stderr: []byte("one\n\nprogress 1\rprogress 2\r\ntwo  \n")}
	if got := strings.Join(h.lastLines(), "|"); got != "one|progress 2|two" {
		t.Errorf("%q", got)
	}
}
