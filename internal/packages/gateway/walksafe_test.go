package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi/pypitest"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestAWalkBelievesWhatIsVerified: metadata that is not what the index says, that of
// another release, or of one that nobody may have opens no way; honest metadata does.
func TestAWalkBelievesWhatIsVerified(t *testing.T) {
	type change = func(b *bench, middle *pypitest.Dist)
	for name, c := range map[string]struct {
		before, after change
		want          int
	}{
		"honest": {want: http.StatusOK},
		"other bytes than the index says": {after: func(b *bench, middle *pypitest.Dist) {
			b.registry.Script(filesHost+"/p/"+middle.File+".metadata", liar.Body("text/plain", append(middle.Metadata, []byte("Requires-Dist: more\n")...)))
		}, want: http.StatusForbidden},
		"of another project": {before: func(_ *bench, middle *pypitest.Dist) {
			middle.Metadata = []byte(strings.Replace(string(middle.Metadata), "Name: middle", "Name: root", 1))
		}, want: http.StatusForbidden},
		"of another release": {before: func(_ *bench, middle *pypitest.Dist) {
			middle.Metadata = []byte(strings.Replace(string(middle.Metadata), "Version: 1.0", "Version: 2.0", 1))
		}, want: http.StatusForbidden},
		"that requires something from elsewhere": {before: func(_ *bench, middle *pypitest.Dist) {
			middle.Metadata = append(middle.Metadata, []byte("Requires-Dist: x @ https://x.example/x.whl\n")...)
		}, want: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			root, middle, below := pypitest.Wheel(t, "root", "1.0", "middle"), pypitest.Wheel(t, "middle", "1.0", "below"), pypitest.Wheel(t, "below", "1.0")
			if c.before != nil {
				c.before(b, &middle)
			}
			b.publish(root)
			b.publish(middle)
			b.publish(below)
			if c.after != nil {
				c.after(b, &middle)
			}
			b.judges(lockedRoots)
			if a := b.get("/p/" + below.File); a.StatusCode != c.want {
				t.Errorf("below it: %s", status(a))
			}
		})
	}
}

// TestAWalkPassesNoRefusal: what is denied, too young or waits is not even read, and what
// only it requires is refused.
func TestAWalkPassesNoRefusal(t *testing.T) {
	const roots = "allowed_packages: { python: [ { name: root, with_dependencies: true } ] }\n"
	for name, c := range map[string]struct {
		document string
		young    bool
		want     int
	}{
		"nothing refuses it": {roots, false, http.StatusOK},
		"blocked":            {roots + "blocked_packages: { python: [ { name: middle, version: \"==1.0\" } ] }\n", false, http.StatusForbidden},
		"too young":          {roots + "packages: { min_release_age: 7d }\n", true, http.StatusForbidden},
		"of unknown age":     {roots + "packages: { min_release_age: 7d, age_source: first-seen }\n", false, http.StatusForbidden},
		"another's entry":    {roots + "  # none\n", false, http.StatusOK},
		"capped":             {"allowed_packages: { python: [ { name: root, with_dependencies: true }, { name: middle, version: \">1.0\" } ] }\n", false, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			root, middle, below := pypitest.Wheel(t, "root", "1.0", "middle"), pypitest.Wheel(t, "middle", "1.0", "below"), pypitest.Wheel(t, "below", "1.0")
			if c.young {
				middle.Uploaded = time.Now()
			}
			b.publish(root)
			b.publish(middle)
			b.publish(below)
			b.judges(c.document)
			if a := b.get("/p/" + below.File); a.StatusCode != c.want {
				t.Errorf("below it: %s", status(a))
			}
			if read := b.registry.Count(filesHost + "/p/" + middle.File + ".metadata"); (read > 0) != (c.want == http.StatusOK) {
				t.Errorf("its metadata is read %d times", read)
			}
		})
	}
}

// TestAWalkTakesItsTime and no more: a request does not wait for ever for a parent that
// does not come, and its refusal says why.
func TestAWalkTakesItsTime(t *testing.T) {
	b := newBench(t, func(c *gateway.Config) { c.Limits.WalkTime = 20 * time.Millisecond })
	root, child := pypitest.Wheel(t, "root", "1.0", "child"), pypitest.Wheel(t, "child", "1.0")
	b.publish(root)
	b.publish(child)
	b.page("root", liar.Silence())
	b.judges(lockedRoots)
	if a := b.get("/p/" + child.File); a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, "a request waits no longer for that") {
		t.Errorf("the parent does not come: %s", status(a))
	}
}

// TestAModuleThatTheLogKnowsOtherwise: a go.mod that is not the one of the transparency
// log opens no way.
func TestAModuleThatTheLogKnowsOtherwise(t *testing.T) {
	for _, lies := range []bool{false, true} {
		child := golangtest.New(t, "corp.example/child", "v1.0.0")
		mod := "module corp.example/root\n\nrequire corp.example/child v1.0.0\n"
		root := golangtest.Pack(t, "corp.example/root", "v1.0.0", [2]string{"go.mod", mod}, [2]string{"p.go", "package p\n"})
		b, _ := newGoBench(t, root, child)
		want := http.StatusOK
		if lies {
			want = http.StatusForbidden
			b.registry.Script(indexHost+"/corp.example/root/@v/v1.0.0.mod", liar.Body("text/plain", []byte(mod+"\n// more\n")))
		}
		b.judges(lockedRoots)
		if a := b.get(goFiles(t, child)[0]); a.StatusCode != want {
			t.Errorf("lies %v: %s", lies, status(a))
		}
	}
}
