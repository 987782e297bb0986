package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/pkgref"
)

const ownIndex = "https://own.example/simple"

// TestARegistryIsComparedWithTheOneThatIsAsked, whole but for its spelling; where none is known, each one is another.
func TestARegistryIsComparedWithTheOneThatIsAsked(t *testing.T) {
	t.Parallel()
	lines := func(address string, asked askedHere, assumePublic bool) (string, string) {
		dir := laidProject(t, mixed{files: map[string]string{"requirements.txt": "-i " + address + "\nsix\n"}})
		p, err := wantsOf(dir, asked, assumePublic)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, l := range p.leftOut {
			said = append(said, l.String())
		}
		return strings.Join(p.roots[pkgref.Python], " "), strings.Join(said, "\n")
	}
	for _, address := range []string{indexHere, indexHere + "/", "HTTPS://Index.Example:443/simple//"} {
		if roots, said := lines(address, asksHere, false); roots != "six" || said != "" {
			t.Errorf("%s: %q, %s", address, roots, said)
		}
	}
	for _, address := range []string{
		"https://index.example", "https://index.example/simple/x", "https://index.example/Simple", "https://index.example:8443/simple", "http://index.example/simple", "https://u:p@index.example/simple",
		"https://index.example.own.example/simple", "https://index.example@own.example/simple", indexHere + "?x", indexHere + "#x", "//index.example/simple", "index.example/simple", "https://index.example%2esimple",
	} {
		if roots, said := lines(address, asksHere, false); roots != "" || !strings.Contains(said, "the project names another registry") {
			t.Errorf("%s: %q, %s", address, roots, said)
		}
	}
	unknown := func(pkgref.Ecosystem) (string, error) { return "", errors.New("there is no pip here") }
	if roots, said := lines(indexHere, unknown, false); roots != "" || !strings.Contains(said, "is not known: there is no pip here") {
		t.Errorf("%q, %s", roots, said)
	}
	if roots, said := lines(ownIndex, asksHere, true); roots != "six" || strings.Contains(said, "none is allowed") {
		t.Errorf("%q, %s", roots, said)
	}
}

// TestNoClientIsAskedWithoutNeed: most projects name no registry.
func TestNoClientIsAskedWithoutNeed(t *testing.T) {
	t.Parallel()
	dir := laidProject(t, mixed{files: map[string]string{"requirements.txt": "six\n", "package.json": `{"dependencies":{"ms":"2"}}`, ".npmrc": "save-exact=true\n"}})
	p, err := wantsOf(dir, func(e pkgref.Ecosystem) (string, error) { t.Errorf("%s was asked", e); return "", nil }, false)
	if err != nil || p.count() != 2 {
		t.Errorf("%v, %v", p.roots, err)
	}
}
