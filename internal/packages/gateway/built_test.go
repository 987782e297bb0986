package gateway_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
)

// sdist is a source distribution of a release.
func sdist(tb testing.TB, name, version string) pypitest.Dist {
	tb.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for path, text := range map[string]string{"PKG-INFO": "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\nSummary: of " + name + "\n"} {
		if err := w.WriteHeader(&tar.Header{Name: name + "-" + version + "/" + path, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return pypitest.Dist{Name: name, Version: version, File: name + "-" + version + ".tar.gz", Bytes: b.Bytes(), Uploaded: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// builtPath is where what is built of foo 1.0 is offered.
const builtPath = "/p/foo-1.0-0cofferdam-py3-none-any.whl"

// throwaway is the rule of a policy that has source distributions built apart.
func throwaway(_ pkgref.Ref, f door.File) policy.Decision {
	if f.Kind == policy.KindSdist {
		return policy.Decision{Effect: policy.Deny, Rule: "packages.sdist", Reason: "it is built apart"}
	}
	return policy.Decision{Effect: policy.Allow}
}

// newBuildingBench has foo 1.0 as a source distribution alone, of which wheel is built.
func newBuildingBench(t *testing.T, made func(door.BuildAsk) ([]byte, string)) *bench {
	t.Helper()
	b := newBench(t, nil)
	b.door.rule(throwaway)
	b.door.builder, b.door.makes, b.door.build = "builder-1", []policy.ArtifactKind{policy.KindBuilt}, made
	b.publish(sdist(t, "foo", "1.0"))
	return b
}

func buildsOf(made pypitest.Dist) func(door.BuildAsk) ([]byte, string) {
	return func(door.BuildAsk) ([]byte, string) { return made.Bytes, "" }
}

// TestBuiltIsOfferedInItsSourcesPlace: the page has what is built and not the source, and
// what is served is what the build made, once it was built and looked into.
func TestBuiltIsOfferedInItsSourcesPlace(t *testing.T) {
	t.Parallel()
	made := pypitest.Wheel(t, "foo", "1.0", "bar>=2")
	b := newBuildingBench(t, buildsOf(made))
	page := b.get("/simple/foo/", "Accept", pypitest.TypeJSON)
	if !strings.Contains(page.body, builtPath+`","hashes":{}`) || strings.Contains(page.body, "foo-1.0.tar.gz") {
		t.Fatalf("the page is %s", status(page))
	}
	if text := b.get("/simple/foo/", "Accept", "text/html"); !strings.Contains(text.body, builtPath+`"`) || strings.Contains(text.body, "sha256=") {
		t.Errorf("as HTML it is %s", status(text))
	}
	got := b.get(builtPath)
	if got.StatusCode != http.StatusOK || got.body != string(made.Bytes) {
		t.Fatalf("it is %.300s", status(got))
	}
	source := sdist(t, "foo", "1.0")
	if n := len(b.door.builds); n != 1 || b.door.builds[0].SHA256 != source.Digest() || b.door.builds[0].Source != source.File {
		t.Errorf("%d builds, of %+v", n, b.door.builds)
	}
	served := b.door.Served()
	if len(served) != 1 || served[0].SHA256 != made.Digest() || served[0].File.Digest != "sha256:"+source.Digest() || served[0].File.Kind != policy.KindBuilt {
		t.Fatalf("served was %+v", served)
	}
	if !slices.ContainsFunc(served[0].Findings, func(f string) bool { return strings.Contains(f, source.File) }) {
		t.Errorf("the findings do not say what it was built of: %q", served[0].Findings)
	}
	if reqs := b.door.edges["python foo 1.0"]; len(b.door.edges) != 1 || len(reqs) > 0 && reqs[0].Name != "bar" {
		t.Errorf("its requirements are %+v", b.door.edges)
	}
	if got := b.get("/p/foo-1.0.tar.gz"); got.StatusCode != http.StatusForbidden {
		t.Errorf("the source itself is %s", status(got))
	}
	if got := b.get(builtPath + ".metadata"); got.StatusCode != http.StatusNotFound {
		t.Errorf("its metadata is %s", status(got))
	}
	// Once is enough, also for a later gateway; under other conditions it is built anew.
	b.restart()
	if got := b.get(builtPath); got.StatusCode != http.StatusOK || len(b.door.builds) != 1 {
		t.Errorf("after a restart: %.100s, %d builds", status(got), len(b.door.builds))
	}
	b.door.builder = "builder-2"
	if got := b.get(builtPath); got.StatusCode != http.StatusOK || len(b.door.builds) != 2 {
		t.Errorf("by another builder: %.100s, %d builds", status(got), len(b.door.builds))
	}
}

// TestNothingIsOfferedWithoutABuilder: for a run without one, the page and the path are as
// ever.
func TestNothingIsOfferedWithoutABuilder(t *testing.T) {
	t.Parallel()
	b := newBuildingBench(t, buildsOf(pypitest.Wheel(t, "foo", "1.0")))
	b.door.builder, b.door.makes = "", nil
	if page := b.get("/simple/foo/"); strings.Contains(page.body, "cofferdam-py3") || !strings.Contains(page.body, "foo-1.0.tar.gz") {
		t.Errorf("the page is %s", status(page))
	}
	if got := b.get(builtPath); got.StatusCode == http.StatusOK || len(b.door.builds) != 0 {
		t.Errorf("it is %s", status(got))
	}
}

// TestAWheelForAllIsEnough: where a release has one, nothing is built of its source.
func TestAWheelForAllIsEnough(t *testing.T) {
	t.Parallel()
	b := newBuildingBench(t, buildsOf(pypitest.Wheel(t, "foo", "1.0")))
	platform := pypitest.Wheel(t, "foo", "2.0")
	platform.File = "foo-2.0-cp311-cp311-linux_x86_64.whl"
	b.publish(sdist(t, "foo", "1.0"), pypitest.Wheel(t, "foo", "1.0"), sdist(t, "foo", "2.0"), platform)
	page := b.get("/simple/foo/")
	if strings.Contains(page.body, "foo-1.0-0cofferdam") || !strings.Contains(page.body, "foo-2.0-0cofferdam") || !strings.Contains(page.body, platform.File) {
		t.Errorf("the page is %s", page.body)
	}
}

// TestOneBuildForAllRequests: those that come while it is built wait for that.
func TestOneBuildForAllRequests(t *testing.T) {
	t.Parallel()
	made := pypitest.Wheel(t, "foo", "1.0")
	b := newBuildingBench(t, buildsOf(made))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := b.get(builtPath); got.StatusCode != http.StatusOK || got.body != string(made.Bytes) {
				t.Errorf("it is %.200s", status(got))
			}
		})
	}
	wg.Wait()
	if n := len(b.door.builds); n != 1 {
		t.Errorf("%d builds", n)
	}
}

// TestARefusedBuildIsARefusal: with the daemon's reason and record, and what was wanted is
// not served.
func TestARefusedBuildIsARefusal(t *testing.T) {
	t.Parallel()
	b := newBuildingBench(t, func(door.BuildAsk) ([]byte, string) { return nil, "its build failed: no setuptools" })
	got := b.get(builtPath)
	if got.StatusCode != http.StatusForbidden || !strings.Contains(got.Status, "its build failed") || got.Header.Get("X-Cofferdam-Request") != "r-build" {
		t.Errorf("it is %s", status(got))
	}
	if len(b.door.Served()) != 0 {
		t.Error("something was served")
	}
}

// TestHostileBuilds: what comes out of a build is looked into like what a publisher
// uploads, and more.
func TestHostileBuilds(t *testing.T) {
	t.Parallel()
	good := pypitest.Wheel(t, "foo", "1.0")
	for name, tt := range map[string]struct {
		bytes []byte
		says  string
	}{
		"another project": {pypitest.Wheel(t, "bar", "1.0").Bytes, "release"},
		"another version": {pypitest.Wheel(t, "foo", "1.1").Bytes, "release"},
		"no wheel":        {[]byte("#!/bin/sh\n"), "archive"},
		"cut":             {good.Bytes[:len(good.Bytes)-40], "archive"},
		"out of its root": {pypitest.WheelOf(t, "foo", "1.0", [2]string{"../evil.py", "x"}).Bytes, "leaves the archive"},
		"absolute":        {pypitest.WheelOf(t, "foo", "1.0", [2]string{"/etc/evil.py", "x"}).Bytes, "absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuildingBench(t, func(door.BuildAsk) ([]byte, string) { return tt.bytes, "" })
			got := b.get(builtPath)
			if got.StatusCode < 400 || !strings.Contains(got.Status+got.body, tt.says) {
				t.Errorf("it is %s", status(got))
			}
			if len(b.door.Served()) != 0 || len(b.door.Failures()) != 1 {
				t.Errorf("served %d, refused %+v", len(b.door.Served()), b.door.Failures())
			}
		})
	}
}

// TestNothingIsBuiltBeforeItIsAdmitted: what waits for a person is built once they have said
// yes, and a no builds nothing.
func TestNothingIsBuiltBeforeItIsAdmitted(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]policy.Effect{"yes": policy.Allow, "no": policy.Deny} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBuildingBench(t, buildsOf(pypitest.Wheel(t, "foo", "1.0")))
			b.door.rule(func(pkgref.Ref, door.File) policy.Decision {
				return policy.Decision{Effect: policy.Hold, Reason: "it waits"}
			})
			early := 0
			b.door.wait = func(context.Context, door.AwaitAsk) error {
				b.door.mu.Lock()
				early = len(b.door.builds)
				b.door.mu.Unlock()
				b.door.rule(func(pkgref.Ref, door.File) policy.Decision {
					return policy.Decision{Effect: answer, Reason: "a person answered"}
				})
				return nil
			}
			got := b.get(builtPath)
			built := len(b.door.builds)
			if early != 0 || answer == policy.Allow && (got.StatusCode != http.StatusOK || built != 1) || answer == policy.Deny && (got.StatusCode != http.StatusForbidden || built != 0) {
				t.Errorf("built %d before the answer and %d in all; it is %.200s", early, built, status(got))
			}
		})
	}
}
