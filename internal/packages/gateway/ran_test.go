package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/npm/npmtest"
)

// ranPath is where what is left of foo 1.0.0 is offered when its scripts ran.
const ranPath = "/foo/-/foo-1.0.0.0cofferdam.tgz"

// newRunningBench has foo 1.0.0, which runs a script when it is installed.
func newRunningBench(t *testing.T, made func(door.BuildAsk) ([]byte, string)) (*bench, npmtest.Release) {
	t.Helper()
	b := newNodeBench(t, nil)
	b.door.rule(func(_ pkgref.Ref, f door.File) policy.Decision {
		if f.Kind == policy.KindPackage && f.Scripts {
			return policy.Decision{Effect: policy.Deny, Rule: "packages.install_scripts", Reason: "its scripts run apart"}
		}
		return policy.Decision{Effect: policy.Allow}
	})
	b.door.builder, b.door.makes, b.door.build = "builder-1", []policy.ArtifactKind{policy.KindRan}, made
	foo := npmtest.Pack(t, "foo", "1.0.0", map[string]any{
		"scripts": map[string]any{"postinstall": "node make.js", "test": "x"}, "dependencies": map[string]any{"bar": "^2.0.0"},
	})
	b.nodePublish(indexHost, nil, foo)
	return b, foo
}

// ran is what is left of foo 1.0.0 when its scripts ran.
func ran(t *testing.T, members map[string]any, files ...[2]string) []byte {
	t.Helper()
	return npmtest.Pack(t, "foo", "1.0.0", members, files...).Bytes
}

// TestRanIsOfferedInItsSourcesPlace: the page has a release that runs nothing, and what is
// served is what came of its scripts, once they ran and it was looked into.
func TestRanIsOfferedInItsSourcesPlace(t *testing.T) {
	t.Parallel()
	made := ran(t, map[string]any{"dependencies": map[string]any{"bar": "^2.0.0"}}, [2]string{"made.txt", "by a script"})
	b, foo := newRunningBench(t, func(door.BuildAsk) ([]byte, string) { return made, "" })
	for _, accept := range []string{corgi, npmtest.Type} {
		page := b.get("/foo", "Accept", accept)
		if page.StatusCode != http.StatusOK || !strings.Contains(page.body, ranPath) || strings.Contains(page.body, "postinstall") || strings.Contains(page.body, "hasInstallScript") || strings.Contains(page.body, foo.Integrity()) {
			t.Fatalf("the page is %s", status(page))
		}
	}
	got := b.get(ranPath)
	if got.StatusCode != http.StatusOK || got.body != string(made) {
		t.Fatalf("it is %.300s", status(got))
	}
	if len(b.door.builds) != 1 || b.door.builds[0].Source != foo.File || b.door.builds[0].File.Digest != foo.Digest() || b.door.builds[0].URL != "https://"+indexHost+foo.Path() {
		t.Errorf("the builds are %+v", b.door.builds)
	}
	served := b.door.Served()
	if len(served) != 1 || served[0].File.Kind != policy.KindRan || served[0].File.Scripts || served[0].File.Digest != foo.Digest() ||
		!slices.ContainsFunc(served[0].Findings, func(f string) bool {
			return strings.Contains(f, "install scripts ran") && strings.Contains(f, foo.File)
		}) {
		t.Errorf("served was %+v", served)
	}
	if got := b.get(foo.Path()); got.StatusCode != http.StatusForbidden || !strings.Contains(got.Status+got.body, "its scripts run apart") {
		t.Errorf("the published one is %s", status(got))
	}
	b.restart()
	if got := b.get(ranPath); got.StatusCode != http.StatusOK || len(b.door.builds) != 1 {
		t.Errorf("after a restart: %.100s, %d builds", status(got), len(b.door.builds))
	}
	b.door.builder = "builder-2"
	if got := b.get(ranPath); got.StatusCode != http.StatusOK || len(b.door.builds) != 2 {
		t.Errorf("by another builder: %.100s, %d builds", status(got), len(b.door.builds))
	}
	b.door.makes = []policy.ArtifactKind{policy.KindBuilt}
	if page := b.get("/foo", "Accept", corgi); strings.Contains(page.body, "0cofferdam") {
		t.Errorf("where only source distributions are built, the page is %s", status(page))
	}
	if got := b.get(ranPath); got.StatusCode == http.StatusOK {
		t.Errorf("where only source distributions are built, it is %s", status(got))
	}
}

// TestAskingRunsNoScripts: a plan asks for the head of each file. Nothing is made for it, and
// what was made before is told of.
func TestAskingRunsNoScripts(t *testing.T) {
	t.Parallel()
	made := ran(t, map[string]any{"dependencies": map[string]any{"bar": "^2.0.0"}})
	b, _ := newRunningBench(t, func(door.BuildAsk) ([]byte, string) { return made, "" })
	head := b.do(sandboxA, http.MethodHead, "https://"+indexHost+ranPath)
	if head.StatusCode != http.StatusOK || len(b.door.builds) != 0 || head.ContentLength > 0 {
		t.Errorf("HEAD: %s, %d bytes, %d builds", head.Status, head.ContentLength, len(b.door.builds))
	}
	if got := b.get(ranPath); got.StatusCode != http.StatusOK || len(b.door.builds) != 1 {
		t.Fatalf("GET: %s, %d builds", got.Status, len(b.door.builds))
	}
	head = b.do(sandboxA, http.MethodHead, "https://"+indexHost+ranPath)
	if head.StatusCode != http.StatusOK || head.ContentLength != int64(len(made)) || len(b.door.builds) != 1 {
		t.Errorf("HEAD once it is made: %s, %d bytes, %d builds", head.Status, head.ContentLength, len(b.door.builds))
	}
	b.door.rule(func(pkgref.Ref, door.File) policy.Decision {
		return policy.Decision{Effect: policy.Deny, Rule: "x", Reason: "no"}
	})
	if head := b.do(sandboxA, http.MethodHead, "https://"+indexHost+ranPath); head.StatusCode != http.StatusForbidden {
		t.Errorf("HEAD of what is refused: %s", head.Status)
	}
}

// TestHostileScripts: what comes out of a sandbox in which scripts ran is looked into.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bytes []byte
		says  string
	}{
		"runs again":      {ran(t, map[string]any{"scripts": map[string]any{"install": "x"}}), "still runs"},
		"requires more":   {ran(t, map[string]any{"dependencies": map[string]any{"evil": "1.0.0"}}), "requires evil"},
		"another release": {npmtest.Pack(t, "foo", "1.0.1", nil).Bytes, "version"},
		"another package": {npmtest.Pack(t, "bar", "1.0.0", nil).Bytes, "is about"},
		"no package":      {[]byte("#!/bin/sh\n"), "archive"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := newRunningBench(t, func(door.BuildAsk) ([]byte, string) { return tt.bytes, "" })
			got := b.get(ranPath)
			if got.StatusCode < 400 || !strings.Contains(got.Status+got.body, tt.says) || len(b.door.Served()) != 0 {
				t.Errorf("it is %s", status(got))
			}
		})
	}
}
