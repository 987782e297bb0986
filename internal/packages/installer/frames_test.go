package installer_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

func frames(docs map[string]string) []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		fmt.Fprintf(&b, "cofferdam-plan %s %d\n%s\n", name, len(docs[name]), docs[name])
	}
	return b.Bytes()
}

func TestFrames(t *testing.T) {
	names := []string{"go.sum", "go.sum.before"}
	want := map[string]string{"go.sum": "a\nb", "go.sum.before": ""}
	docs, err := installer.ReadOutput(frames(want), names)
	if err != nil || len(docs) != 2 || string(docs["go.sum"]) != "a\nb" || docs["go.sum.before"] == nil {
		t.Fatalf("%q, %v", docs, err)
	}
	if docs, err := installer.ReadOutput(nil, names); err != nil || len(docs) != 0 {
		t.Errorf("nothing gave %q, %v", docs, err)
	}
	for _, bad := range []string{
		"x", "\n", "hello\n", "cofferdam-plan go.sum 5\nabc\n", "cofferdam-plan go.sum 3\nabcd", "cofferdam-plan go.sum 3\nabc",
		"cofferdam-plan go.sum -1\n\n", "cofferdam-plan go.sum 03\nabc\n", "cofferdam-plan go.sum 3 \nabc\n", "cofferdam-plan ../x 3\nabc\n",
		"cofferdam-plan go.sum 99999999999999999999\nabc\n", "cofferdam-plan go.sum 4294967295\nabc\n", "cofferdam-plan go.sum 2147483647\nabc\n",
		string(frames(want)) + "more", string(frames(want)) + string(frames(want)), strings.Repeat("a", 200) + "\n",
	} {
		if docs, err := installer.ReadOutput([]byte(bad), names); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q gave %q, %v", bad, docs, err)
		}
	}
	if _, err := installer.ReadOutput(make([]byte, installer.MaxOutput+1), names); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("too much gave %v", err)
	}
}

func FuzzReadOutput(f *testing.F) {
	names := []string{"go.sum", "report.json", "uv.lock"}
	f.Add([]byte("cofferdam-plan go.sum 3\nabc\n"))
	f.Add([]byte("cofferdam-plan report.json 2\n{}\ncofferdam-plan uv.lock 0\n\n"))
	f.Fuzz(func(t *testing.T, out []byte) {
		docs, err := installer.ReadOutput(out, names)
		total := 0
		for name, data := range docs {
			total += len(data)
			if !slices.Contains(names, name) {
				t.Errorf("an unknown frame %q", name)
			}
		}
		if total > len(out) || err != nil && docs != nil {
			t.Errorf("%d bytes out of %d, %v", total, len(out), err)
		}
	})
}
