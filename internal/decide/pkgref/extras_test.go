package pkgref_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
)

func TestCutExtras(t *testing.T) {
	t.Parallel()
	for written, want := range map[string][]string{
		"rich": {"rich"}, "rich[jupyter]": {"rich", "jupyter"}, "a [ B.c , a_d,b-c ]": {"a", "a-d", "b-c"}, "a[]": {"a"},
		"a[": nil, "a[b": nil, "a[b]c": nil, "a[b,]": nil, "a[-b]": nil, "a[b c]": nil, "a[b][c]": nil,
	} {
		name, extras, ok := pkgref.CutExtras(written)
		if ok != (want != nil) {
			t.Errorf("%q: %v", written, ok)
			continue
		}
		if diff := cmp.Diff(want, append([]string{name}, extras...)); ok && diff != "" {
			t.Errorf("%q: %s", written, diff)
		}
	}
}
