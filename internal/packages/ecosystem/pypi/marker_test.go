package pypi_test

import (
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/pypi"
)

// TestWhatAnExtraBrings: a requirement is an extra's where nobody gets it without one, by
// clients' own reading: once for each extra that is asked for.
func TestWhatAnExtraBrings(t *testing.T) {
	t.Parallel()
	const always, never = "", "never"
	for marker, want := range map[string]string{
		"":                                 always,
		"python_version < '3'":             always,
		"extra == 'x'":                     "x",
		`extra=="X_y.Z"`:                   "x-y-z",
		"'x' == extra":                     "x",
		"extra == 'x' and os_name == 'nt'": "x",
		"extra == 'x' or extra == 'y'":     "x,y",
		"(extra == 'x' or (extra=='y')) and sys_platform != 'win32'": "x,y",
		"extra == 'x' and extra == 'y'":                              never,
		"extra == 'x' or python_version < '3'":                       always,
		"extra != 'x'":                                               always,
		"extra != 'x' and extra == 'y'":                              "y",
		"extra in 'x y'":                                             always, // it can't be told
		"platform_machine not in 'a b' and extra == 'x'":             "x",
		"extra == 'x' and":                                           always, // it can't be read
		"(extra == 'x'":                                              always,
		"extra == 'x' $":                                             always,
		"extra == 'x' extra == 'y'":                                  always,
		strings.Repeat("(", 100) + "extra == 'x'" + strings.Repeat(")", 100): always,
	} {
		d, err := pypi.New().Describe([]byte("Name: a\nVersion: 1.0\nRequires-Dist: b ; " + marker + "\n"))
		got := never
		if err == nil && len(d.Requirements) == 1 {
			got = d.Requirements[0].Under
		}
		if err != nil || got != want {
			t.Errorf("%q: %q, %v", marker, got, err)
		}
	}
	d, err := pypi.New().Describe([]byte("Name: a\nVersion: 1.0\nRequires-Dist: b ; extra == 'all' or extra == 'one'\nRequires-Dist: c ; extra == 'all'\n"))
	if err != nil || d.Requirements[0].Under != "one,all" {
		t.Errorf("the extra that brings least is not first: %+v, %v", d, err)
	}
}
