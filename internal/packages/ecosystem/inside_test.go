package ecosystem_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The account of a file's inside is bounded, and plain.
func TestInsideIsBounded(t *testing.T) {
	t.Parallel()
	var in ecosystem.Inside
	for i := range 2_000 {
		in.AddPath(fmt.Sprintf("lib/%d.so", i), nil)
		in.AddModule(fmt.Sprintf("m%d", i))
	}
	in.AddPath(strings.Repeat("x", 1_000), nil)
	in.AddEntryPoint("a\x1b[2Jb " + strings.Repeat("y", 1_000))
	in.AddStart("twice.pth")
	in.AddStart("twice.pth")
	if in.Files != 2_001 || len(in.Native) != 60 || len(in.Modules) != 60 || len(in.Paths) != 500 || len(in.Starts) != 1 {
		t.Errorf("%d files, %d native, %d modules, %d paths, %d starts", in.Files, len(in.Native), len(in.Modules), len(in.Paths), len(in.Starts))
	}
	if e := in.EntryPoints[0]; len(e) > 210 || strings.Contains(e, "\x1b") {
		t.Errorf("an entry point is %q", e)
	}
}

func TestHeadLosesNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "ab", "abcd", "abcdefgh"} {
		head, all, err := ecosystem.Head(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		whole, err := io.ReadAll(all)
		if err != nil || string(whole) != text || string(head) != text[:min(4, len(text))] {
			t.Errorf("of %q the head is %q and all %q, %v", text, head, whole, err)
		}
	}
}
