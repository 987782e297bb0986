package npm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// TestLookIsOfWhatWasRead: the registry is asked about each release that the lockfile's own reader has, in whatever form the
// lockfile writes it, and about no other; no command is longer than a system takes.
func TestLookIsOfWhatWasRead(t *testing.T) {
	t.Parallel()
	lock := []byte(`{"lockfileVersion":3,"packages":{"":{"name":"demo"},"packages/own":{"name":"own","version":"1.0.0"},"node_modules/own":{"link":true},
		"node_modules/alias":{"name":"@s/real","version":"2.0.0-rc.1","integrity":"` + sri + `"},
		"node_modules/a/node_modules/@s/b":{"version":"1.0.0","integrity":"` + sri + `"},
		"node_modules/c":{"version":"1.0.0","integrity":"` + sri + `","cpu":["no-such"],"optional":true}}}`)
	result, err := resolver().Result(installer.Documents{packageLock: lock})
	if err != nil {
		t.Fatal(err)
	}
	commands := resolver().Look(result.Choices)
	if len(commands) != 1 || !slices.Equal(commands[0][4:], []string{"@s/b@1.0.0", "@s/real@2.0.0-rc.1"}) {
		t.Errorf("it asks for %q", commands)
	}
	var many []installer.Choice
	for i := range 20_000 {
		many = append(many, installer.Choice{Name: fmt.Sprintf("@scope/a-long-name-of-a-package-%d", i), Version: "10.20.30"})
	}
	words := 0
	for _, argv := range resolver().Look(many) {
		if words += len(argv) - 4; len(strings.Join(argv, " ")) > 100_000 {
			t.Errorf("a command has %d bytes", len(strings.Join(argv, " ")))
		}
	}
	if words != len(many) || resolver().Look(nil) != nil {
		t.Errorf("%d of %d are asked for", words, len(many))
	}
}
