package pip

import (
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestPin: one release goes into a requirements.txt, and all else in it
// stays as it is.
func TestPin(t *testing.T) {
	t.Parallel()
	rich := pkgref.Ref{Ecosystem: pkgref.Python, Name: "rich", Version: "13.7.1"}
	digests := []string{"sha256:bb", "md5:00", "sha256:aa"}
	const pin = "rich==13.7.1 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
	for name, c := range map[string]struct{ before, after string }{
		"empty":         {"", pin},
		"added":         {"# a comment\nattrs==1 --hash=sha256:cc", "# a comment\nattrs==1 --hash=sha256:cc\n" + pin},
		"other version": {"Rich==1.0 \\\n  --hash=sha256:cc \\\n  --hash=sha256:dd\nzope==1 --hash=sha256:ee\n", "Rich" + pin[4:] + "zope==1 --hash=sha256:ee\n"},
		"same version": {
			"rich[jupyter] == 13.7.1 ; python_version > \"3.8\" --hash sha256:cc # why\n",
			"rich[jupyter]==13.7.1 ; python_version > \"3.8\" \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n",
		},
		"a comment": {"rich==1 # why\nrich-cli==2\n", "# why\n" + pin + "rich-cli==2\n"},
		"windows":   {"x==1 --hash=sha256:cc\r\n", "x==1 --hash=sha256:cc\r\nrich==13.7.1 \\\r\n    --hash=sha256:aa \\\r\n    --hash=sha256:bb\r\n"},
	} {
		got, err := client{}.Pin([]byte(c.before), rich, digests)
		if err != nil || string(got) != c.after {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, c.after)
		}
	}
	if got, err := (client{}).Pin(nil, rich, []string{"md5:00"}); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "rich 13.7.1") {
		t.Errorf("without a digest that counts: %q, %v", got, err)
	}
}
