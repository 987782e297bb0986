package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/all"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream"
	"github.com/cofferdam-dev/cofferdam/internal/packages/upstream/liar"
)

// TestAToyIsDecided: a policy that names the toy ecosystem decides of its releases, the
// gateway serves and refuses them by the toy's own protocol, and both are on record.
func TestAToyIsDecided(t *testing.T) {
	var protocol ecosystem.Protocol
	for _, p := range all.Protocols() {
		if p.Ecosystem() == pkgref.Toy {
			protocol = p
		}
	}
	if protocol == nil {
		t.Fatal("the toy is not on the list")
	}
	b := newToyBench(t, protocol, func(b *bench, _ *upstream.Config) { b.cfg.Protocols = nil })
	for _, name := range []string{"good", "bad"} {
		page := "toy " + name + "\n"
		for _, version := range []string{"1.0.0", "2.0.0"} {
			body := []byte(name + version)
			page += version + " " + sha256Of(body) + "\n"
			b.registry.Script(indexHost+"/"+name+"/"+version+".toy", liar.Body("application/octet-stream", body))
		}
		b.registry.Script(indexHost+"/"+name, liar.Body("text/x-toy", []byte(page+"end\n")))
	}
	log, _ := b.judges(`
packages: { default: deny }
allowed_packages: { toy: [ { name: good, version: ">=1.0.0,<2.0.0" } ] }
`)
	if a := b.get("/good"); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "\n1.0.0 sha256:") || strings.Contains(a.body, "\n2.0.0 ") {
		t.Errorf("the page: %s\n%s", status(a), a.body)
	}
	if a := b.get("/good/1.0.0.toy"); a.StatusCode != http.StatusOK || a.body != "good1.0.0" {
		t.Errorf("what is allowed: %s", status(a))
	}
	for _, path := range []string{"/good/2.0.0.toy", "/bad/1.0.0.toy"} {
		if a := b.get(path); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", path, status(a))
		}
	}
	var served, refused int
	for _, r := range recorded(t, log) {
		switch {
		case r.Ecosystem == string(pkgref.Toy) && r.Outcome == audit.Served:
			served++
		case r.Ecosystem == string(pkgref.Toy) && r.Outcome == audit.Blocked:
			refused++
		}
	}
	if served != 1 || refused < 2 {
		t.Errorf("%d served and %d refused are on record", served, refused)
	}
}
