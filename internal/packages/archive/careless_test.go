package archive_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
)

// TestCareless: what is permitted is, only then, and nothing beside it.
func TestCareless(t *testing.T) {
	zeros := func(b []byte) []byte { return append(zipped(t, b), make([]byte, 700)...) }
	for name, c := range map[string]struct {
		in   []byte
		want []string // nil: refused in any case
	}{
		"a dot":          {zipped(t, ended(file("a/./././b", "x"))), []string{"a/b"}},
		"twice":          {zipped(t, ended(file("a/./b", "x"), file("a/b", "y"))), []string{"a/b", "a/b"}},
		"zeros":          {zeros(ended(file("a", "x"))), []string{"a"}},
		"not zeros":      {append(zeros(ended(file("a", "x"))), 1), nil},
		"in case":        {zipped(t, ended(file("a/b", "x"), file("a/B", "x"))), nil},
		"a folder":       {zipped(t, ended(file("a/b", "x"), file("a/./b/c", "x"))), nil},
		"a link":         {zipped(t, ended(file("a", "x"), raw{path: "a", flag: '2', link: "b"})), nil},
		"a hard link":    {zipped(t, ended(file("a", "x"), file("b", "x"), raw{path: "a", flag: '1', link: "b"})), nil},
		"two dots":       {zipped(t, ended(file("a/./../b", "x"))), nil},
		"a dot at last":  {zipped(t, ended(file("a/.", "x"))), nil},
		"slashes of dot": {zipped(t, ended(file("a/.//b", "x"))), nil},
	} {
		var got []string
		err := archive.TarGz(bytes.NewReader(c.in), int64(len(c.in)), archive.Limits{Careless: true}, func(m archive.Member, _ io.Reader) error {
			got = append(got, m.Path)
			return nil
		})
		if c.want == nil != errors.Is(err, fault.ErrInvalid) || c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
		if err := readGz(c.in, archive.Limits{}); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: permitted without Careless: %v", name, err)
		}
	}
}
