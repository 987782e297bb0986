package admission

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/gitwire"
)

// pushAsked pushes, and returns what a person is shown of it, by which they decide.
func pushAsked(t *testing.T, change gitwire.Change) (approval.Request, string) {
	t.Helper()
	h := newAskingHouse(t, "fail", Limits{}, underGit(t, "fail"))
	ask := pushTo("acme/app")
	ask.Change = change
	if _, err := h.AwaitPush(t.Context(), ask); err != nil {
		t.Fatal(err)
	}
	requests := h.pending(t)
	if len(requests) != 1 {
		t.Fatalf("%d requests", len(requests))
	}
	text, err := json.Marshal(requests[0].Evidence)
	if err != nil {
		t.Fatal(err)
	}
	return requests[0], string(text)
}

// TestTwoPushesNeverLookTheSame: whatever place they differ in, the evidence that a person reads
// differs there, and no line of it is cut.
func TestTwoPushesNeverLookTheSame(t *testing.T) {
	longest := strings.Repeat("\U0001f980", 40) // as long as a ref can be, and ten letters each when it is shown
	for name, of := range map[string]func(x string) gitwire.Change{
		"the new object": func(x string) gitwire.Change {
			return gitwire.Change{Commands: []gitwire.Command{{Old: object("c"), New: strings.Repeat("d", 39) + x, Ref: "refs/heads/" + longest}}}
		},
		"the old object": func(x string) gitwire.Change {
			return gitwire.Change{Commands: []gitwire.Command{{Old: strings.Repeat("c", 39) + x, New: object("d"), Ref: "refs/heads/" + longest}}}
		},
		"the object that is deleted": func(x string) gitwire.Change {
			return gitwire.Change{Commands: []gitwire.Command{{Old: strings.Repeat("c", 39) + x, New: object("0"), Ref: "refs/heads/" + longest}}}
		},
		"the ref's last letter": func(x string) gitwire.Change {
			return gitwire.Change{Commands: []gitwire.Command{{Old: object("c"), New: object("d"), Ref: "refs/heads/" + longest + x}}}
		},
		"an option": func(x string) gitwire.Change {
			return gitwire.Change{Commands: []gitwire.Command{moving("b")}, Options: []string{strings.Repeat("\u00e9", 99) + x}}
		},
		"the last of fifty": func(x string) gitwire.Change {
			var c gitwire.Change
			for i := range gitwire.MaxCommands {
				c.Commands = append(c.Commands, gitwire.Command{Old: object("c"), New: object("d"), Ref: fmt.Sprintf("refs/heads/%s%d", longest, i)})
			}
			c.Commands[gitwire.MaxCommands-1].New = strings.Repeat("d", 39) + x
			return c
		},
	} {
		one, a := pushAsked(t, of("a"))
		_, again := pushAsked(t, of("a"))
		other, b := pushAsked(t, of("b"))
		if a != again {
			t.Errorf("%s: the control: one push is shown as two", name)
		}
		if a == b || one.What() == other.What() {
			t.Errorf("%s: both are shown as %.1000s, %s", name, a, one.What())
		}
	}
}

// TestTheWorstOfAPushComesFirst: fifty refs with letters that look like others hide no ref that
// is deleted and no tag that moves.
func TestTheWorstOfAPushComesFirst(t *testing.T) {
	var c gitwire.Change
	for i := range gitwire.MaxCommands - 2 {
		c.Commands = append(c.Commands, gitwire.Command{Old: object("0"), New: object("d"), Ref: fmt.Sprintf("refs/notes/m\u0430in%d", i)})
	}
	c.Commands = append(c.Commands, gitwire.Command{Old: object("c"), New: object("d"), Ref: "refs/tags/v1"}, gitwire.Command{Old: object("c"), New: object("0"), Ref: "refs/heads/main"})
	r, _ := pushAsked(t, c)
	if got := r.Evidence.Findings; len(got) < 2 || got[0] != "it deletes refs/heads/main" || !strings.HasPrefix(got[1], "it moves the tag refs/tags/v1") {
		t.Errorf("%q", got)
	}
	if want := 2*(gitwire.MaxCommands-2) + 2; r.Evidence.Count("findings") != want || len(r.Evidence.Host.Refs) != gitwire.MaxCommands {
		t.Errorf("%d findings of %d, %d refs", r.Evidence.Count("findings"), want, len(r.Evidence.Host.Refs))
	}
}
