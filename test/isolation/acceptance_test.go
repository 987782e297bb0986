package isolation

import (
	"crypto/rand"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// board is a place at which one sandbox may try to leave a word for another.
type board struct {
	name  string
	of    law
	write func(p *pair, place, word string) error
	read  func(p *pair, place string) (Observation, error)
}

// boards are ways to write at the registry: by every verb that a store of packages may know,
// by the names of what is asked for, and in what comes with a question.
func boards() []board {
	at := func(place string) string { return "https://" + registryHost + "/simple/" + place + "/" }
	read := func(p *pair, place string) (Observation, error) { return p.receiver.within(ask{Get: at(place)}) }
	all := []board{
		{"a name", allowing, func(p *pair, place, _ string) error { return second(p.sender.within(ask{Get: at(place)})) }, read},
		{"a name that neither may have", denying, func(p *pair, place, _ string) error { return second(p.sender.within(ask{Get: at(place)})) }, read},
		{"a file below a name", allowing, func(p *pair, place, word string) error {
			return second(p.sender.within(ask{Get: "https://" + registryHost + "/files/" + place + "-1.0-" + word + ".whl"}))
		}, read},
		{"a question with a body", allowing, func(p *pair, place, word string) error {
			return second(p.sender.within(ask{Get: at(place) + "?word=" + word, Body: word}))
		}, read},
	}
	for _, verb := range []string{http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete, "MKCOL", "PROPFIND", "PROPPATCH", "COPY", "MOVE", "LOCK"} {
		all = append(all, board{"the verb " + verb, allowing, func(p *pair, place, word string) error {
			return second(p.sender.within(ask{Get: at(place), Method: verb, Body: word}))
		}, read})
	}
	return all
}

// meant leaves out of an answer all that is of its place and of its moment: names, digests,
// ids, the date and the tag.
var meant = regexp.MustCompile(`(?m)^(Date|Etag|Content-Length): .*$|request [a-z0-9]+|sha256[=:][0-9a-f]+`)

func plainly(seen Observation, place string) string {
	return meant.ReplaceAllString(strings.ReplaceAll(seen.Text, place, "PLACE"), "")
}

// tryBoards has the sender write everywhere, and holds the receiver's answers against those
// at places where nobody wrote.
func tryBoards(t *testing.T, h *house, moment string) {
	t.Helper()
	for _, b := range boards() {
		p := h.pair(b.of)
		word, place, other := "word"+lower(), "pl"+lower(), "pl"+lower()
		if err := b.write(p, place, word); err != nil {
			t.Errorf("INCONCLUSIVE: %s, %s: %v", moment, b.name, err)
			continue
		}
		got, err := b.read(p, place)
		if err != nil {
			t.Errorf("INCONCLUSIVE: %s, %s: %v", moment, b.name, err)
			continue
		}
		want, err := b.read(p, other)
		if err != nil {
			t.Errorf("INCONCLUSIVE: %s, %s: %v", moment, b.name, err)
			continue
		}
		if strings.Contains(got.Text, word) || plainly(got, place) != plainly(want, other) {
			t.Errorf("ESCAPED: %s, %s: where another sandbox wrote it says\n%s\nand where nobody did\n%s", moment, b.name, got.Text, want.Text)
		}
	}
	if wrote := h.upstream.written(); len(wrote) > 0 {
		t.Errorf("ESCAPED: %s: these reached the registry: %q", moment, wrote)
	}
}

func lower() string { return strings.ToLower(rand.Text()) }

// wantAccess fails unless both have what their policy gives them.
func wantAccess(t *testing.T, h *house, moment string) {
	t.Helper()
	for _, n := range []*tenant{h.pair(allowing).sender, h.pair(allowing).receiver} {
		name := "needed" + lower()
		page, err := n.page(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := n.file(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(page.Text, "HTTP/1.1 200") || !strings.HasPrefix(file.Text, "HTTP/1.1 200") {
			t.Errorf("%s, %s does not get an allowed package: %s, %s", moment, n.name, page.Text, file.Text)
		}
	}
	if refused, err := h.pair(denying).receiver.file("needed"); err != nil || strings.HasPrefix(refused.Text, "HTTP/1.1 200") {
		t.Errorf("%s, what nothing allows comes in: %s %v", moment, refused.Text, err)
	}
}

// TestSharedServices asks what the proposal for OWASP's list of risks of agents' skills
// (weak isolation through shared services) asks for: one sandbox can't write what another
// reads, required packages come, a board that the policy allows is found by the same eyes,
// and all of it is so again after the daemon and the gateway were killed.
func TestSharedServices(t *testing.T) {
	h := openHouse(t, filepath.Join(root(t), "bin"))
	wantBoard(t, h, "at first")
	wantAccess(t, h, "at first")
	tryBoards(t, h, "at first")
	h.killDaemon()
	wantAccess(t, h, "after a kill")
	tryBoards(t, h, "after a kill")
	wantBoard(t, h, "after a kill")
}

// wantBoard is the permissive control: at a host that both policies list, one leaves a word
// and the other reads it.
func wantBoard(t *testing.T, h *house, moment string) {
	t.Helper()
	p, word, place := h.pair(allowing), "word"+lower(), "https://"+listedHost+"/"+lower()
	if _, err := p.sender.within(ask{Get: place, Method: http.MethodPut, Body: word, Anew: true}); err != nil {
		t.Fatalf("INCONCLUSIVE: %s: %v", moment, err)
	}
	if got, err := p.receiver.within(ask{Get: place, Anew: true}); err != nil || !strings.Contains(got.Text, word) {
		t.Errorf("INCONCLUSIVE: %s, the word is not found where the policy lets both write and read: %s %v", moment, got.Text, err)
	}
}
