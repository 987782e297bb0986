package sdk

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestWireOfTheNewestSDK: what the newest SDK of the index sends is what the control plane's own tests know of
// (internal/serve/httpapi/e2b/testdata/wire.txt). A difference is news: write the file anew with wire.py, and see what
// those tests say.
func TestWireOfTheNewestSDK(t *testing.T) {
	if !long() {
		t.Skip("set COFFERDAM_LONG=1 for it (make sdk-newest): a release of the SDK's makers must fail no build of ours")
	}
	known, err := os.ReadFile("../../internal/serve/httpapi/e2b/testdata/wire.txt")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python(t, "latest"), "wire.py")
	cmd.Stderr = t.Output()
	newest, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	gone, came, version := changes(string(known), string(newest))
	t.Log(version)
	for _, line := range came {
		t.Errorf("the newest SDK has more: %s", line)
	}
	for _, line := range gone {
		t.Errorf("the newest SDK has no more: %s", line)
	}
}

// changes are the lines that only one of two descriptions has, and a line about the versions, which may differ.
func changes(known, newest string) (gone, came []string, version string) {
	of := func(text string) (first string, rest []string) {
		first, below, _ := strings.Cut(strings.TrimSpace(text), "\n")
		return first, strings.Split(below, "\n")
	}
	was, had := of(known)
	is, has := of(newest)
	only := func(some, others []string) []string {
		return slices.DeleteFunc(slices.Clone(some), func(l string) bool { return slices.Contains(others, l) })
	}
	return only(had, has), only(has, had), "known: " + was + ", newest: " + is
}

func TestChanges(t *testing.T) {
	t.Parallel()
	gone, came, version := changes("version 1\nroute GET /a\nroute GET /b\n", "version 2\nroute GET /b\nroute GET /c\n")
	if !slices.Equal(gone, []string{"route GET /a"}) || !slices.Equal(came, []string{"route GET /c"}) || version != "known: version 1, newest: version 2" {
		t.Errorf("%q %q %q", gone, came, version)
	}
}
